"""A fake NVML with the real ABI: see README.md beside this file."""
