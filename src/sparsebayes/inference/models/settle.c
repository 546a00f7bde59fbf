/* All precisions and the noise of a Gaussian model, settled together on arrays of the size of the model.

   This is GaussianModel._relaxed and GaussianModel._settled of models/gaussian.py, statement by statement: these say why
   each step is made, serve where this file is not compiled, and are what the tests hold it against.  Factorisations are
   LAPACK's, by the pointers that SciPy offers, so that nothing has to be linked; triangles are inverted here, in half the
   time that LAPACK takes for a hundred functions.  Matrices are stored by columns. */

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#ifndef SOURCE
#define SOURCE ""
#endif
#if defined(_WIN32)
#define EXPORT __declspec(dllexport)
#else
#define EXPORT
#endif

/* Loops that take most of the time are compiled for several generations of processors; which runs is found when loaded. */
#if defined(__x86_64__) && defined(__GLIBC__) && __GNUC__ >= 12 && !defined(__clang__) /* others may not know these */
#define VECTORISED __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define VECTORISED
#endif

/* Right-hand sides that are solved for at once. */
#define SIDES 4

/* Digest of the source that was compiled: another one is not called. */
EXPORT const char sparsebayes_source[] = SOURCE;

typedef struct {
    void (*potrf)(char *, int *, double *, int *, int *);
    void (*potrs)(char *, int *, int *, double *, int *, double *, int *, int *);
    void (*lauum)(char *, int *, double *, int *, int *);
} Lapack;

/* The model to settle; compiled.py has the same fields in the same order. */
typedef struct {
    int size, targets, learn_noise;
    double n, sumsq, cost, tol;
    double low, high, most_certain, rounding;
    int sweeps;
    double longer, longest, shorter, shortest;
    int steps, polish;
    double near_by, reach;
    int n_lengths, n_shifts;
    const double *lengths, *shifts;
} Model;

/* Some of the functions, with inner products with one another and with the targets. */
typedef struct {
    int size;
    int *functions;
    double *gram, *projection;
} Products;

typedef struct {
    Products *products;
    double *alpha, *inverse, *half, *mean, *variance, *well, *mean2;
    double beta, fit, evidence;
} Posterior;

typedef struct {
    const Lapack *lapack;
    const Model *model;
    Products given, first, second;
    Posterior here, trial;
    double *hessian, *step, *square, *root, *scaled, *sides;
    unsigned char *idle;
} Work;

VECTORISED static double dot(int n, const double *x, const double *y) {
    double a = 0.0, b = 0.0, c = 0.0, d = 0.0;
    int i = 0;
    for (; i + 4 <= n; i += 4) {
        a += x[i] * y[i];
        b += x[i + 1] * y[i + 1];
        c += x[i + 2] * y[i + 2];
        d += x[i + 3] * y[i + 3];
    }
    for (; i < n; i++) a += x[i] * y[i];
    return (a + b) + (c + d);
}

VECTORISED static void add(int n, double factor, const double *x, double *y) {
    for (int i = 0; i < n; i++) y[i] += factor * x[i];
}

static double clipped(double value, double low, double high) {
    return value < low ? low : value > high ? high : value;
}

static double worth(const Work *w, const Posterior *p) { return p->evidence - w->model->cost * p->products->size; }

/* -- the posterior ----------------------------------------------------------------------------------------- */

/* Log evidence (T&F eq. 7), given the sum of the logarithms of the diagonal of L; gamma and the weights' squares. */
static void weigh(const Work *w, Posterior *p, double fit, double log_diagonal) {
    const Model *m = w->model;
    int a = p->products->size;
    double shrunk = 0.0, log_alpha = 0.0;
    for (int j = 0; j < a; j++) {
        double squares = 0.0, well = 1.0 - p->alpha[j] * p->variance[j];
        for (int t = 0; t < m->targets; t++) squares += p->mean[j + t * a] * p->mean[j + t * a];
        p->mean2[j] = squares / m->targets;
        p->well[j] = well > 0.0 ? well : 0.0;
        shrunk += p->alpha[j] * squares;
        log_alpha += log(p->alpha[j]);
    }
    double least = DBL_EPSILON * m->sumsq;
    p->fit = fit > least ? fit : least;
    p->evidence = 0.5 * m->targets * m->n * log(p->beta / (2.0 * 3.14159265358979323846)) - 0.5 * p->beta * p->fit -
                  0.5 * shrunk + m->targets * (0.5 * log_alpha - log_diagonal);
}

/* L x = b for right-hand sides of which those of a row lie together; four columns of L are eliminated at once. */
VECTORISED static void substitute(int n, const double *restrict L, int stride, double *restrict X) {
    for (int k = 0; k < n; k += 4) {
        const double *l0 = L + k + (size_t)k * stride, *l1 = l0 + stride, *l2 = l1 + stride, *l3 = l2 + stride;
        int size = n - k < 4 ? n - k : 4;
        double s[4][SIDES], *x = X + (size_t)k * SIDES;
        for (int p = 0; p < size; p++, x += SIDES) {
            const double *l = l0 + p + (size_t)p * stride;
            double pivot = 1.0 / l[0];
            for (int c = 0; c < SIDES; c++) s[p][c] = x[c] *= pivot;
            for (int i = 1; i < size - p; i++)
                for (int c = 0; c < SIDES; c++) x[i * SIDES + c] -= l[i] * x[c];
        }
        for (int i = 4; i < n - k; i++, x += SIDES)
            for (int c = 0; c < SIDES; c++) x[c] -= l0[i] * s[0][c] + l1[i] * s[1][c] + l2[i] * s[2][c] + l3[i] * s[3][c];
    }
}

/* The inverse of a lower triangle in its place, some columns at a time. */
static void invert(int a, double *L, double *X) {
    for (int j = 0; j < a; j += SIDES) {
        int left = a - j, columns = left < SIDES ? left : SIDES;
        double *corner = L + j + (size_t)j * a;
        memset(X, 0, SIDES * (size_t)left * sizeof(double));
        for (int c = 0; c < columns; c++) X[c * SIDES + c] = 1.0;
        substitute(left, corner, a, X);
        for (int c = 0; c < columns; c++)
            for (int i = c; i < left; i++) corner[i + (size_t)c * a] = X[i * SIDES + c];
    }
}

/* Cholesky's factor of beta G + A, inverted. */
static int inverted(const Work *w, Posterior *p, double *log_diagonal) {
    int a = p->products->size, failed = 0;
    double *L = p->inverse, *gram = p->products->gram;
    for (int j = 0; j < a; j++) {
        for (int i = 0; i < j; i++) L[i + (size_t)j * a] = 0.0;
        for (int i = j; i < a; i++) L[i + (size_t)j * a] = p->beta * gram[i + (size_t)j * a];
        L[j + (size_t)j * a] += p->alpha[j];
    }
    if (a) w->lapack->potrf("L", &a, L, &a, &failed);
    if (failed) return 0;
    *log_diagonal = 0.0;
    for (int j = 0; j < a; j++) *log_diagonal += log(L[j + (size_t)j * a]);
    invert(a, L, w->sides);
    for (int j = 0; j < a; j++) p->variance[j] = dot(a - j, L + j + (size_t)j * a, L + j + (size_t)j * a);
    return 1;
}

/* The mean of one target whose inner products with the functions are b. */
static void average(const Posterior *p, int t, const double *b) {
    int a = p->products->size;
    double *L = p->inverse, *half = p->half + t * a, *mean = p->mean + t * a;
    memset(half, 0, a * sizeof(double));
    for (int j = 0; j < a; j++) add(a - j, b[j], L + j + (size_t)j * a, half + j);
    for (int j = 0; j < a; j++) mean[j] = p->beta * dot(a - j, L + j + (size_t)j * a, half + j);
}

/* Everything at these precisions and this noise; 0 where that is at the mercy of rounding. */
static int computed(const Work *w, Posterior *p) {
    const Model *m = w->model;
    int a = p->products->size;
    double log_diagonal, fit = m->sumsq, squares = 0.0;
    if (!inverted(w, p, &log_diagonal)) return 0;
    for (int t = 0; t < m->targets; t++) {
        const double *b = p->products->projection + t * a, *mean = p->mean + t * a;
        average(p, t, b);
        for (int j = 0; j < a; j++) fit += mean[j] * (dot(a, p->products->gram + (size_t)j * a, mean) - 2.0 * b[j]);
        squares += dot(a, mean, mean);
    }
    weigh(w, p, fit, log_diagonal);
    return !(DBL_EPSILON * p->beta * squares > m->rounding * fmax(1.0, fabs(p->evidence)));
}

/* Put the products of the functions that are not left out where the present ones are not. */
static Products *restricted(Work *w, const unsigned char *out) {
    Products *from = w->here.products, *to = from == &w->first ? &w->second : &w->first;
    int a = from->size, b = 0, k = 0;
    for (int j = 0; j < a; j++)
        if (!out[j]) to->functions[b++] = from->functions[j];
    to->size = b;
    for (int j = 0; j < a; j++) {
        if (out[j]) continue;
        for (int i = 0, l = 0; i < a; i++)
            if (!out[i]) to->gram[l++ + (size_t)k * b] = from->gram[i + (size_t)j * a];
        for (int t = 0; t < w->model->targets; t++) to->projection[k + t * b] = from->projection[j + t * a];
        k++;
    }
    return to;
}

static void accept(Work *w) {
    Posterior old = w->here;
    w->here = w->trial;
    w->trial = old;
}

/* -- what is best left out (T&F eq. 21) -------------------------------------------------------------------- */

static int find_idle(Work *w) {
    const Model *m = w->model;
    const Posterior *p = &w->here;
    int found = 0;
    for (int j = 0; j < p->products->size; j++) {
        double variance = p->variance[j], well = p->well[j], mean2 = p->mean2[j];
        int idle = mean2 <= well * variance;
        if (m->cost > 0.0) {
            double s = well / variance, q2 = mean2 / (variance * variance), best = INFINITY;
            if (q2 > s) best = s * (s / (q2 - s));
            if (!(best > 0.0)) best = p->alpha[j];
            idle = !isfinite(best) || !(m->targets * 0.5 * (q2 / (best + s) - log1p(s / best)) > m->cost);
        }
        w->idle[j] = (unsigned char)idle;
        found += idle;
    }
    return found;
}

static int leave(Work *w) {
    Posterior *trial = &w->trial;
    trial->products = restricted(w, w->idle);
    for (int j = 0, k = 0; j < w->here.products->size; j++)
        if (!w->idle[j]) trial->alpha[k++] = w->here.alpha[j];
    trial->beta = w->here.beta;
    if (!computed(w, trial) || !(worth(w, trial) >= worth(w, &w->here))) return 0;
    accept(w);
    return 1;
}

/* Of the idle ones only that which matters least. */
static void keep_but_one(Work *w) {
    const Posterior *p = &w->here;
    int least = -1;
    for (int j = 0; j < p->products->size; j++)
        if (w->idle[j] && (least < 0 || p->mean2[j] * p->alpha[j] < p->mean2[least] * p->alpha[least])) least = j;
    memset(w->idle, 0, p->products->size);
    w->idle[least] = 1;
}

static void drop_idle(Work *w) {
    while (w->here.products->size && find_idle(w)) {
        if (leave(w)) continue;
        keep_but_one(w);
        if (!leave(w)) return;
    }
}

/* -- MacKay's fixed point, over-relaxed -------------------------------------------------------------------- */

/* One sweep over those that are not idle, and the noise (report on Tipping 2001 eqs 12-13), on trial. */
static int fixed_point(Work *w, double step) {
    const Model *m = w->model;
    const Posterior *p = &w->here;
    Posterior *trial = &w->trial;
    int found = find_idle(w);
    double used = 0.0;
    trial->products = found ? restricted(w, w->idle) : p->products;
    for (int j = 0, k = 0; j < p->products->size; j++) {
        double well = p->well[j] > 1e-12 ? p->well[j] : 1e-12;
        double wanted = well / (p->mean2[j] > DBL_MIN ? p->mean2[j] : DBL_MIN);
        used += well;
        if (w->idle[j]) continue;
        double change = log(clipped(wanted, m->low, m->high)) - log(p->alpha[j]);
        trial->alpha[k++] = clipped(p->alpha[j] * exp(step * change), m->low, m->high);
    }
    trial->beta = p->beta;
    if (m->learn_noise) {
        double left = fmax(m->n - used, DBL_EPSILON * m->n), wanted = m->targets * left / p->fit;
        trial->beta = fmin(p->beta * pow(wanted / p->beta, step), m->most_certain);
    }
    return computed(w, trial);
}

static void relax(Work *w) {
    const Model *m = w->model;
    double step = 1.0;
    for (int sweep = 0; sweep < m->sweeps; sweep++) {
        double rise = fixed_point(w, step) ? worth(w, &w->trial) - worth(w, &w->here) : -INFINITY;
        if (rise > 0.0) {
            accept(w);
            step = fmin(m->longer * step, m->longest);
            if (rise < m->tol || !w->here.products->size) break;
        } else if (step < m->shortest) {
            break;
        } else {
            step *= m->shorter;
        }
    }
    drop_idle(w);
}

/* -- Newton's method (evidence.py has the derivatives) ----------------------------------------------------- */

/* The step in all log alpha, and in log beta (last) where the noise is learned; how long its longest part is. */
static double newton_step(Work *w) {
    const Model *m = w->model;
    const Posterior *p = &w->here;
    int a = p->products->size, size = a + m->learn_noise, targets = m->targets, failed = 0, one = 1;
    double *C = w->square, *H = w->hessian, *root = w->root, *mean = w->scaled, *step = w->step;
    double bb = 0.0, trace = 0.0, longest = 0.0;
    memcpy(C, p->inverse, (size_t)a * a * sizeof(double));
    w->lapack->lauum("L", &a, C, &a, &failed); /* L^-T L^-1 */
    for (int j = 0; j < a; j++) {
        root[j] = sqrt(p->alpha[j]);
        for (int t = 0; t < targets; t++) mean[j + t * a] = p->mean[j + t * a] * root[j];
    }
    for (int j = 0; j < a; j++)
        for (int i = 0; i < j; i++) {
            double value = C[j + (size_t)i * a] * root[i] * root[j];
            C[i + (size_t)j * a] = C[j + (size_t)i * a] = value;
        }
    for (int j = 0; j < a; j++) {
        double *c = C + (size_t)j * a, *h = H + (size_t)j * size, squares = 0.0;
        c[j] *= p->alpha[j];
        for (int i = 0; i < a; i++) h[i] = 0.5 * targets * c[i];
        for (int t = 0; t < targets; t++) {
            add(a, mean[j + t * a], mean + t * a, h);
            squares += mean[j + t * a] * mean[j + t * a];
        }
        for (int i = 0; i < a; i++) h[i] *= -c[i];
        h[j] += 0.5 * (targets * c[j] + squares);
        step[j] = 0.5 * (targets - targets * c[j] - squares);
    }
    if (m->learn_noise) {
        double fit = p->beta * p->fit, used = 0.0;
        for (int j = 0; j < a; j++) {
            double *c = C + (size_t)j * a, v = c[j] - dot(a, c, c), pulled = 0.0;
            for (int t = 0; t < targets; t++) pulled += mean[j + t * a] * dot(a, c, mean + t * a);
            H[a + (size_t)j * size] = H[j + (size_t)a * size] = pulled - 0.5 * targets * v;
            bb += pulled;
            trace += v;
            used += c[j];
        }
        H[a + (size_t)a * size] = 0.5 * (targets * trace + fit) - bb;
        step[a] = 0.5 * (targets * (m->n - a + used) - fit);
    }
    double *factor = w->square; /* C has served */
    failed = 1;
    for (int k = 0; k < m->n_shifts && failed; k++) {
        memcpy(factor, H, (size_t)size * size * sizeof(double));
        for (int j = 0; j < size; j++) factor[j + (size_t)j * size] += m->shifts[k];
        w->lapack->potrf("L", &size, factor, &size, &failed);
    }
    if (failed) memset(step, 0, size * sizeof(double));
    else w->lapack->potrs("L", &size, &one, factor, &size, step, &size, &failed);
    for (int j = 0; j < size; j++) longest = fmax(longest, fabs(step[j]));
    for (int j = 0; j < size; j++) step[j] /= fmax(1.0, longest / m->reach);
    return longest / fmax(1.0, longest / m->reach);
}

/* The model that far along the step, on trial. */
static int along(Work *w, double length, double low, double high) {
    const Posterior *p = &w->here;
    int a = p->products->size;
    w->trial.products = p->products;
    for (int j = 0; j < a; j++) w->trial.alpha[j] = clipped(p->alpha[j] * exp(length * w->step[j]), low, high);
    w->trial.beta = p->beta;
    if (w->model->learn_noise) w->trial.beta = fmin(p->beta * exp(length * w->step[a]), w->model->most_certain);
    return computed(w, &w->trial);
}

static int newton(Work *w) {
    const Model *m = w->model;
    newton_step(w);
    for (int k = 0; k < m->n_lengths; k++)
        if (along(w, m->lengths[k], m->low, m->high) && worth(w, &w->trial) > worth(w, &w->here)) return 1;
    return 0;
}

static void settle(Work *w) {
    const Model *m = w->model;
    for (int k = 0; k < m->steps; k++) {
        drop_idle(w);
        if (!w->here.products->size) return;
        if (!newton(w)) break;
        double rise = worth(w, &w->trial) - worth(w, &w->here);
        accept(w);
        if (rise < m->tol) break;
    }
    for (int k = 0; k < m->polish; k++) {
        if (newton_step(w) > m->near_by || !along(w, 1.0, 0.0, INFINITY)) return;
        accept(w);
    }
}

/* -- what is called ---------------------------------------------------------------------------------------- */

/* Settle a model.

   gram, projection: (a, a) and (a, T); functions: 0 to a - 1 on entry, those that are left at the end; alpha and numbers
   (beta, fit, evidence): on entry and at the end; inverse, half, mean: at the end.  Returns how many functions are left,
   -1 where the model given cannot be computed, -2 without memory. */
EXPORT int sparsebayes_settle(const Lapack *lapack, const Model *model, int closely, double *gram, double *projection,
                              int *functions, double *alpha, double *numbers, double *inverse, double *half,
                              double *mean) {
    int a = model->size, targets = model->targets;
    size_t wide = (size_t)(a + 1) * (a + 1), vectors = (size_t)(a + 1) * targets;
    size_t total = 6 * wide + 7 * vectors + (10 + SIDES) * (size_t)(a + 1);
    double *memory = malloc(total * sizeof(double) + 2 * (size_t)(a + 1) * sizeof(int) + (size_t)(a + 1)), *next = memory;
    if (!memory) return -2;
    Work w;
    w.lapack = lapack;
    w.model = model;
#define TAKE(count) (next += (count), next - (count))
    Posterior *both[] = {&w.here, &w.trial};
    for (int k = 0; k < 2; k++) {
        both[k]->inverse = TAKE(wide);
        both[k]->half = TAKE(vectors);
        both[k]->mean = TAKE(vectors);
        both[k]->alpha = TAKE(a + 1);
        both[k]->variance = TAKE(a + 1);
        both[k]->well = TAKE(a + 1);
        both[k]->mean2 = TAKE(a + 1);
    }
    w.given = (Products){a, functions, gram, projection};
    Products *spare[] = {&w.first, &w.second};
    for (int k = 0; k < 2; k++) {
        spare[k]->gram = TAKE(wide);
        spare[k]->projection = TAKE(vectors);
    }
    w.hessian = TAKE(wide);
    w.square = TAKE(wide);
    w.scaled = TAKE(vectors);
    w.step = TAKE(a + 1);
    w.root = TAKE(a + 1);
    w.sides = TAKE(SIDES * (size_t)(a + 1));
    w.first.functions = (int *)next;
    w.second.functions = w.first.functions + a + 1;
    w.idle = (unsigned char *)(w.second.functions + a + 1);

    w.here.products = &w.given;
    w.here.beta = numbers[0];
    memcpy(w.here.alpha, alpha, a * sizeof(double));
    int left = -1;
    if (computed(&w, &w.here)) {
        if (closely) settle(&w);
        else relax(&w);
        const Posterior *p = &w.here;
        left = p->products->size;
        if (p->products != &w.given) memcpy(functions, p->products->functions, left * sizeof(int));
        memcpy(alpha, p->alpha, left * sizeof(double));
        memcpy(inverse, p->inverse, (size_t)left * left * sizeof(double));
        memcpy(half, p->half, (size_t)left * targets * sizeof(double));
        memcpy(mean, p->mean, (size_t)left * targets * sizeof(double));
        numbers[0] = p->beta;
        numbers[1] = p->fit;
        numbers[2] = p->evidence;
    }
    free(memory);
    return left;
}
