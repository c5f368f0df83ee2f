/* The polynomial of eight variables and its gradient, as a person writes them in C. */

#define PY_SSIZE_T_CLEAN
#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#include <Python.h>
#include <numpy/arrayobject.h>

#define AT(k) x[(k) * step]
#define TO(k) g[(k) * step]

/* Value and gradient at one point; the variables are `step` numbers apart. */
static inline double
point(const double *restrict x, double *restrict g, npy_intp step)
{
    const double xx5 = AT(5) * AT(5), xx7 = AT(7) * AT(7), xx4 = AT(4) * AT(4), xx6 = AT(6) * AT(6);
    const double re57 = AT(7) * (xx7 - 3 * xx5), im57 = AT(5) * (3 * xx7 - xx5);
    const double re46 = AT(4) * (xx4 - 3 * xx6), im46 = AT(6) * (3 * xx4 - xx6);
    const double slope57 = 3 * (xx7 - xx5), cross57 = 6 * AT(5) * AT(7);
    const double slope46 = 3 * (xx4 - xx6), cross46 = 6 * AT(4) * AT(6);
    const double value = AT(2) * re57 + AT(0) * im57 + AT(3) * re46 + AT(1) * im46 - 1.2342523;
    TO(0) = im57;
    TO(1) = im46;
    TO(2) = re57;
    TO(3) = re46;
    TO(4) = AT(3) * slope46 + AT(1) * cross46;
    TO(5) = AT(0) * slope57 - AT(2) * cross57;
    TO(6) = AT(1) * slope46 - AT(3) * cross46;
    TO(7) = AT(2) * slope57 + AT(0) * cross57;
    return value;
}

static PyArrayObject *
checked(PyObject *given, int axes)
{
    PyArrayObject *array = (PyArrayObject *)given;
    if (!PyArray_Check(given) || PyArray_TYPE(array) != NPY_DOUBLE || PyArray_NDIM(array) != axes
        || !PyArray_ISCARRAY_RO(array)) {
        PyErr_SetString(PyExc_TypeError, "expected an array of doubles in C order");
        return NULL;
    }
    return array;
}

static PyObject *
result(double value, PyArrayObject *gradient)
{
    return Py_BuildValue("dN", value, (PyObject *)gradient);
}

static PyObject *
one(PyObject *Py_UNUSED(module), PyObject *given)
{
    PyArrayObject *x = checked(given, 1), *g;
    if (x == NULL || (g = (PyArrayObject *)PyArray_SimpleNew(1, PyArray_DIMS(x), NPY_DOUBLE)) == NULL)
        return NULL;
    PyObject *pair = PyTuple_New(2);
    PyTuple_SET_ITEM(pair, 0, PyFloat_FromDouble(point(PyArray_DATA(x), PyArray_DATA(g), 1)));
    PyTuple_SET_ITEM(pair, 1, (PyObject *)g);
    return pair;
}

/* Rows (8, N): vectors of neighbouring points, the rows shared among threads. */
static PyObject *
rows(PyObject *Py_UNUSED(module), PyObject *given)
{
    PyArrayObject *array = checked(given, 2), *gradient;
    if (array == NULL || (gradient = (PyArrayObject *)PyArray_SimpleNew(2, PyArray_DIMS(array), NPY_DOUBLE)) == NULL)
        return NULL;
    const npy_intp count = PyArray_DIM(array, 1);
    const double *restrict x = PyArray_DATA(array);
    double *restrict g = PyArray_DATA(gradient);
    double total = 0;
    Py_BEGIN_ALLOW_THREADS
#pragma omp parallel for simd reduction(+ : total)
    for (npy_intp i = 0; i < count; i++)
        total += point(x + i, g + i, count);
    Py_END_ALLOW_THREADS
    return result(total, gradient);
}

/* Points (N, 8): one after the other. */
static PyObject *
points(PyObject *Py_UNUSED(module), PyObject *given)
{
    PyArrayObject *array = checked(given, 2), *gradient;
    if (array == NULL || (gradient = (PyArrayObject *)PyArray_SimpleNew(2, PyArray_DIMS(array), NPY_DOUBLE)) == NULL)
        return NULL;
    const npy_intp count = PyArray_DIM(array, 0);
    const double *x = PyArray_DATA(array);
    double *g = PyArray_DATA(gradient);
    double total = 0;
    for (npy_intp i = 0; i < count; i++)
        total += point(x + 8 * i, g + 8 * i, 1);
    return result(total, gradient);
}

static PyMethodDef methods[] = {
    {"one", one, METH_O, NULL},
    {"rows", rows, METH_O, NULL},
    {"points", points, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef definition = {PyModuleDef_HEAD_INIT, "yota_native", NULL, 0, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC
PyInit_yota_native(void)
{
    import_array();
    return PyModule_Create(&definition);
}
