"""What runs inside the training process. The standard library alone; torch and ultralytics only when called.

Nothing here may break or slow a training run: a failure is one warning in the log and a line in the stream.
"""
