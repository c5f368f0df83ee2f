/* Kepler's equation for many bodies, with the slopes of the sum, as a person writes it in C. */

#define PY_SSIZE_T_CLEAN
#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#include <Python.h>
#include <math.h>
#include <numpy/arrayobject.h>

static PyObject *
kepler(PyObject *self, PyObject *args)
{
    PyArrayObject *arrays[4];
    if (!PyArg_ParseTuple(args, "O!O!O!O!", &PyArray_Type, &arrays[0], &PyArray_Type, &arrays[1], &PyArray_Type,
                          &arrays[2], &PyArray_Type, &arrays[3]))
        return NULL;
    const double *M = PyArray_DATA(arrays[0]), *e = PyArray_DATA(arrays[1]);
    double *by_M = PyArray_DATA(arrays[2]), *by_e = PyArray_DATA(arrays[3]), total = 0;
    for (npy_intp i = 0; i < PyArray_SIZE(arrays[0]); i++) {
        double E = M[i] + e[i] * sin(M[i]), sine, slope;
        for (int k = 0; k < 50; k++) {
            sine = sin(E);
            slope = 1 - e[i] * cos(E);
            const double step = (E - e[i] * sine - M[i]) / slope;
            E -= step;
            if (fabs(step) <= 1e-10 * (1 + fabs(E)))
                break;
        }
        sine = sin(E);
        by_M[i] = 1 / (1 - e[i] * cos(E));
        by_e[i] = sine * by_M[i];
        total += E;
    }
    return PyFloat_FromDouble(total);
}

static PyMethodDef methods[] = {{"kepler", kepler, METH_VARARGS, "The sum of the anomalies; slopes are written."},
                                {NULL, NULL, 0, NULL}};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "yota_native", NULL, -1, methods};

PyMODINIT_FUNC
PyInit_yota_native(void)
{
    import_array();
    return PyModule_Create(&module);
}
