/* Values that vary in time, written as "sine 80 15 20 + noise 0 4". */
#include "fake.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct { const char *name; enum shape shape; int least, most; } SHAPES[] = {
    {"sine", SINE, 3, 4}, {"square", SQUARE, 4, 5}, {"saw", SAW, 3, 3}, {"ramp", RAMP, 2, 3}, {"noise", NOISE, 2, 2},
};

static double scaled(const char *word, char **end) {
    double number = strtod(word, end); /* also hexadecimal */
    switch (**end) {
    case 'K': ++*end; return number * 1024;
    case 'M': ++*end; return number * 1048576;
    case 'G': ++*end; return number * 1073741824;
    default: return number;
    }
}

static int numbers(char *text, double *into, int most) {
    int count = 0;
    char *save = NULL;
    for (char *word = strtok_r(text, " \t", &save); word; word = strtok_r(NULL, " \t", &save)) {
        char *end;
        if (count == most) return -1;
        into[count++] = scaled(word, &end);
        if (*end) return -1;
    }
    return count;
}

static bool term_parse(char *text, struct term *term) {
    while (*text == ' ' || *text == '\t') ++text;
    memset(term, 0, sizeof *term);
    double given[2 * MAX_POINTS] = {0};
    if (strncmp(text, "points ", 7) == 0) {
        int count = numbers(text + 7, given, 2 * MAX_POINTS);
        if (count < 2 || count % 2) return false;
        term->shape = POINTS;
        term->points = count / 2;
        for (int i = 0; i < term->points; ++i) term->at[i] = given[2 * i], term->value[i] = given[2 * i + 1];
        return true;
    }
    for (size_t i = 0; i < sizeof SHAPES / sizeof *SHAPES; ++i) {
        size_t length = strlen(SHAPES[i].name);
        if (strncmp(text, SHAPES[i].name, length) || text[length] != ' ') continue;
        int count = numbers(text + length, given, 5);
        if (count < SHAPES[i].least || count > SHAPES[i].most) return false;
        term->shape = SHAPES[i].shape;
        if (term->shape == RAMP && count == 2) given[2] = INFINITY;
        term->a = given[0], term->b = given[1], term->c = given[2], term->d = given[3];
        term->at[0] = given[4];
        return true;
    }
    term->shape = CONSTANT;
    int count = numbers(text, given, 1);
    term->a = given[0];
    return count == 1;
}

bool wave_parse(const char *text, struct wave *into) {
    struct wave wave = {.present = true};
    if (strncmp(text, "none", 4) == 0) {
        wave_free(into);
        return true;
    }
    char copy[2048], *rest = copy;
    strncpy(copy, text, sizeof copy - 1);
    copy[sizeof copy - 1] = 0;
    struct term terms[MAX_TERMS];
    while (rest) {
        char *plus = strstr(rest, " + ");
        if (plus) *plus = 0;
        if (wave.terms == MAX_TERMS || !term_parse(rest, &terms[wave.terms++])) return false;
        rest = plus ? plus + 3 : NULL;
    }
    wave.term = malloc(sizeof *terms * (size_t)wave.terms);
    memcpy(wave.term, terms, sizeof *terms * (size_t)wave.terms);
    wave_free(into);
    *into = wave;
    return true;
}

void wave_free(struct wave *wave) {
    free(wave->term);
    memset(wave, 0, sizeof *wave);
}

static double noise(double t) { /* -1 to 1, the same for the same 100 ms */
    uint64_t x = (uint64_t)(int64_t)floor(t * 10) + 0x9E3779B97F4A7C15u;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return (double)((x ^ (x >> 31)) >> 11) / 4503599627370496.0 - 1.0;
}

static double term_at(const struct term *term, double t) {
    switch (term->shape) {
    case CONSTANT: return term->a;
    case SINE: return term->a + term->b * sin(6.283185307179586 * (t + term->d) / term->c);
    case SQUARE: return fmod(t + term->at[0], term->c) < term->d * term->c ? term->b : term->a;
    case SAW: return term->a + (term->b - term->a) * fmod(t, term->c) / term->c;
    case RAMP: return term->b >= 0 ? fmin(term->a + term->b * t, term->c) : fmax(term->a + term->b * t, term->c);
    case NOISE: return term->a + term->b * noise(t);
    case POINTS:
        for (int i = 1; i < term->points; ++i)
            if (t < term->at[i]) {
                double share = (t - term->at[i - 1]) / (term->at[i] - term->at[i - 1]);
                return term->value[i - 1] + (term->value[i] - term->value[i - 1]) * fmax(share, 0);
            }
        return term->value[term->points - 1];
    }
    return 0;
}

double wave_at(const struct wave *wave, double t) {
    double sum = 0;
    for (int i = 0; i < wave->terms; ++i) sum += term_at(&wave->term[i], t);
    return sum;
}

double wave_mean(const struct wave *wave, double from, double to) {
    int steps = (int)bounded((to - from) / 0.02, 1, 200);
    double sum = 0;
    for (int i = 0; i < steps; ++i) sum += wave_at(wave, from + (to - from) * (i + 0.5) / steps);
    return sum / steps;
}
