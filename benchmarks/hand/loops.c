/* Time stepping with its gradient, as a person writes it in C: states are stored, stages are computed again. */

#define PY_SSIZE_T_CLEAN
#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#include <Python.h>
#include <math.h>
#include <numpy/arrayobject.h>

/* The sum of x after steps of x + 0.001*sin(x). */
static PyObject *
sine(PyObject *self, PyObject *args)
{
    PyArrayObject *first, *slopes;
    Py_ssize_t steps;
    if (!PyArg_ParseTuple(args, "O!nO!", &PyArray_Type, &first, &steps, &PyArray_Type, &slopes))
        return NULL;
    const npy_intp n = PyArray_SIZE(first);
    double *stored = malloc((steps + 1) * n * sizeof *stored), *slope = PyArray_DATA(slopes), total = 0;
    if (stored == NULL)
        return PyErr_NoMemory();
    memcpy(stored, PyArray_DATA(first), n * sizeof *stored);
    for (Py_ssize_t step = 0; step < steps; step++) {
        const double *restrict x = stored + step * n;
        double *restrict next = stored + (step + 1) * n;
        for (npy_intp i = 0; i < n; i++)
            next[i] = x[i] + 0.001 * sin(x[i]);
    }
    for (npy_intp i = 0; i < n; i++) {
        total += stored[steps * n + i];
        slope[i] = 1;
    }
    for (Py_ssize_t step = steps - 1; step >= 0; step--)
        for (npy_intp i = 0; i < n; i++)
            slope[i] += slope[i] * 0.001 * cos(stored[step * n + i]);
    free(stored);
    return PyFloat_FromDouble(total);
}

/* One stage of prey and hunters: the slopes of y. */
static inline void
rates(const double y[2], const double p[4], double slope[2])
{
    slope[0] = p[0] * y[0] - p[1] * y[0] * y[1];
    slope[1] = p[2] * y[0] * y[1] - p[3] * y[1];
}

/* Adds to by_y and by_p what the adjoints of its slopes give. */
static inline void
rates_back(const double y[2], const double p[4], const double by[2], double by_y[2], double by_p[4])
{
    by_y[0] += by[0] * (p[0] - p[1] * y[1]) + by[1] * p[2] * y[1];
    by_y[1] += by[1] * (p[2] * y[0] - p[3]) - by[0] * p[1] * y[0];
    by_p[0] += by[0] * y[0];
    by_p[1] -= by[0] * y[0] * y[1];
    by_p[2] += by[1] * y[0] * y[1];
    by_p[3] -= by[1] * y[1];
}

/* The stages of one step of Runge and Kutta from y: where each begins, and its slopes. */
static inline void
stages(const double y[2], const double p[4], double at[4][2], double slope[4][2])
{
    static const double shares[4] = {0, 0.005, 0.005, 0.01};
    for (int k = 0; k < 4; k++) {
        for (int i = 0; i < 2; i++)
            at[k][i] = y[i] + (k > 0 ? shares[k] * slope[k - 1][i] : 0);
        rates(at[k], p, slope[k]);
    }
}

/* The sum of the squares of the states after steps of Runge and Kutta, with its slopes by p. */
static PyObject *
runge_kutta(PyObject *self, PyObject *args)
{
    static const double shares[4] = {0, 0.005, 0.005, 0.01}, weights[4] = {1, 2, 2, 1};
    PyArrayObject *parameters, *slopes;
    Py_ssize_t steps;
    if (!PyArg_ParseTuple(args, "O!nO!", &PyArray_Type, &parameters, &steps, &PyArray_Type, &slopes))
        return NULL;
    const double *p = PyArray_DATA(parameters);
    double(*stored)[2] = malloc((steps + 1) * sizeof *stored), at[4][2], slope[4][2], by_p[4] = {0};
    if (stored == NULL)
        return PyErr_NoMemory();
    stored[0][0] = 1.0;
    stored[0][1] = 0.5;
    for (Py_ssize_t step = 0; step < steps; step++) {
        stages(stored[step], p, at, slope);
        for (int i = 0; i < 2; i++)
            stored[step + 1][i] =
                stored[step][i] + 0.01 / 6 * (slope[0][i] + 2 * slope[1][i] + 2 * slope[2][i] + slope[3][i]);
    }
    const double *y = stored[steps], value = y[0] * y[0] + y[1] * y[1];
    double by[2] = {2 * y[0], 2 * y[1]};
    for (Py_ssize_t step = steps - 1; step >= 0; step--) {
        double later[2] = {0}, before[2] = {by[0], by[1]};
        stages(stored[step], p, at, slope);
        for (int k = 3; k >= 0; k--) {
            double by_at[2] = {0}, by_slope[2];
            for (int i = 0; i < 2; i++)
                by_slope[i] = 0.01 / 6 * weights[k] * by[i] + (k < 3 ? shares[k + 1] * later[i] : 0);
            rates_back(at[k], p, by_slope, by_at, by_p);
            for (int i = 0; i < 2; i++) {
                later[i] = by_at[i];
                before[i] += by_at[i];
            }
        }
        by[0] = before[0];
        by[1] = before[1];
    }
    memcpy(PyArray_DATA(slopes), by_p, sizeof by_p);
    free(stored);
    return PyFloat_FromDouble(value);
}

static PyMethodDef methods[] = {{"sine", sine, METH_VARARGS, "The sum; slopes are written."},
                                {"runge_kutta", runge_kutta, METH_VARARGS, "The sum; slopes are written."},
                                {NULL, NULL, 0, NULL}};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "yota_native", NULL, -1, methods};

PyMODINIT_FUNC
PyInit_yota_native(void)
{
    import_array();
    return PyModule_Create(&module);
}
