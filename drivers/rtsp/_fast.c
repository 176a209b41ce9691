/* The work of each packet of video, compiled. The Python functions of the same names are the reference: what these
 * take, return and raise is the same. Each reads a buffer only while it holds an export of it.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <string.h>

/* RTP: the fixed header and the payload's first bytes, which every packet of interest has. */
enum { RTP_HEADER = 12, LEAST_PACKET = 16 };
static const uint64_t NEXT = (uint64_t)1 << 32;
static const uint64_t MARK = (uint64_t)0x80 << 48;

/* How one codec shows the fragments of a slice in the first four bytes of the payload (RFC 6184, RFC 7798). */
typedef struct {
    uint32_t middle_mask, middle, first_mask, first, last_mask, last;
    Py_ssize_t data_at;
} Fragments;

static const Fragments H264 = {0x1FC00000, 0x1C000000, 0x9FFF8000, 0x1C818000, 0x9FFF0000, 0x1C410000, 14};
static const Fragments H265 = {0x7E00C000, 0x62000000, 0xFE00FE80, 0x62008080, 0xFE00FE00, 0x62004000, 15};

/* The begin of a packet: RTP's first two bytes, sequence and timestamp as one number; the payload's first bytes. */
typedef struct {
    uint64_t head;
    uint32_t payload;
    Py_ssize_t size;
} Begin;

static uint32_t number_at(const unsigned char *at) {
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

/* Read a packet's begin; return 1, 0 when the packet is too short, and -1 with an error set. */
static int read_begin(PyObject *packets, Py_ssize_t at, Begin *begin) {
    Py_buffer packet;
    PyObject *item = PyList_GetItem(packets, at);
    if (item == NULL || PyObject_GetBuffer(item, &packet, PyBUF_SIMPLE) < 0)
        return -1;
    int is_long = packet.len >= LEAST_PACKET;
    if (is_long) {
        const unsigned char *bytes = packet.buf;
        begin->head = (uint64_t)number_at(bytes) << 32 | number_at(bytes + 4);
        begin->payload = number_at(bytes + RTP_HEADER);
        begin->size = packet.len;
    }
    PyBuffer_Release(&packet);
    return is_long;
}

/* Append an item, whose reference is taken over; return 0, or -1 with an error set, also for no item. */
static int append(PyObject *list, PyObject *item) {
    if (item == NULL)
        return -1;
    int failed = PyList_Append(list, item);
    Py_DECREF(item);
    return failed;
}

/* Add a new, empty run of packets on a channel; return its list of packets, or NULL with an error set. */
static PyObject *new_run(PyObject *runs, int channel) {
    PyObject *same = PyList_New(0);
    if (same != NULL && append(runs, Py_BuildValue("(iO)", channel, same)) < 0)
        Py_CLEAR(same);
    return same;
}

/* Return whether the channel is in the set; -1 with an error set. */
static int is_among(PyObject *channels, int channel) {
    PyObject *number = PyLong_FromLong(channel);
    int found = number == NULL ? -1 : PySet_Contains(channels, number);
    Py_XDECREF(number);
    return found;
}

static PyObject *packet_runs(PyObject *Py_UNUSED(module), PyObject *args) {
    PyObject *view, *channels, *same = NULL;
    Py_ssize_t at, until;
    Py_buffer buffer;
    if (!PyArg_ParseTuple(args, "OnnO", &view, &at, &until, &channels))
        return NULL;
    if (PyObject_GetBuffer(view, &buffer, PyBUF_SIMPLE) < 0)
        return NULL;
    PyObject *runs = PyList_New(0);
    if (runs == NULL)
        goto failed;
    if (at < 0 || until < at || until > buffer.len) {
        PyErr_SetNone(PyExc_IndexError);
        goto failed;
    }
    const unsigned char *bytes = buffer.buf;
    int current = -1;
    while (until - at >= 4 && bytes[at] == '$') {
        int channel = bytes[at + 1];
        Py_ssize_t end = at + 4 + (bytes[at + 2] << 8 | bytes[at + 3]);
        if (end > until)
            break;
        if (channel != current) {
            int wanted = is_among(channels, channel);
            if (wanted < 0)
                goto failed;
            if (!wanted)
                break;
            current = channel;
            Py_XDECREF(same);
            same = new_run(runs, channel);
            if (same == NULL)
                goto failed;
        }
        if (append(same, PySequence_GetSlice(view, at + 4, end)) < 0)
            goto failed;
        at = end;
    }
    goto done;

failed:
    Py_CLEAR(runs);
done:
    Py_XDECREF(same);
    PyBuffer_Release(&buffer);
    return runs == NULL ? NULL : Py_BuildValue("(Nn)", runs, at);
}

/* Join these fragments, which have `size` bytes of data, behind start code and header; NULL with an error set. */
static PyObject *joined(PyObject *packets, Py_ssize_t from, Py_ssize_t until, Py_ssize_t size, const Fragments *codec,
                        uint32_t payload) {
    unsigned char header[6] = {0, 0, 0, 1, 0, 0};
    Py_ssize_t used = 5;
    header[4] = (unsigned char)((payload >> 24 & 0xE0) | (payload >> 16 & 0x1F));
    if (codec == &H265) {
        header[4] = (unsigned char)((payload >> 24 & 0x81) | (payload >> 7 & 0x7E));
        header[5] = (unsigned char)(payload >> 16);
        used = 6;
    }
    PyObject *unit = PyBytes_FromStringAndSize(NULL, used + size);
    if (unit == NULL)
        return NULL;
    char *target = PyBytes_AsString(unit);
    memcpy(target, header, (size_t)used);
    for (Py_ssize_t at = from; at < until; at++) {
        Py_buffer packet;
        PyObject *item = PyList_GetItem(packets, at);
        if (item == NULL || PyObject_GetBuffer(item, &packet, PyBUF_SIMPLE) < 0)
            goto failed;
        Py_ssize_t count = packet.len - codec->data_at;
        int fits = count >= 0 && count <= size;
        if (fits)
            memcpy(target + used, (const char *)packet.buf + codec->data_at, (size_t)count);
        PyBuffer_Release(&packet);
        if (!fits)
            break;
        used += count;
        size -= count;
    }
    if (size == 0)
        return unit;
    PyErr_SetString(PyExc_RuntimeError, "a packet has changed its size");

failed:
    Py_DECREF(unit);
    return NULL;
}

static PyObject *whole_slices(PyObject *Py_UNUSED(module), PyObject *args) {
    PyObject *packets;
    Py_ssize_t at, largest;
    int is_h265;
    unsigned long long follows;
    long long timestamp;
    if (!PyArg_ParseTuple(args, "O!npKLn", &PyList_Type, &packets, &at, &is_h265, &follows, &timestamp, &largest))
        return NULL;
    PyObject *units = PyList_New(0);
    if (units == NULL)
        return NULL;
    const Fragments *codec = is_h265 ? &H265 : &H264;
    uint64_t wanted = 0;
    uint32_t first = 0;
    Py_ssize_t begun = -1, size = 0;
    for (Py_ssize_t place = at; place < PyList_Size(packets); place++) {
        Begin packet;
        int is_long = read_begin(packets, place, &packet);
        if (is_long < 0)
            goto failed;
        if (!is_long)
            break;
        if (begun >= 0)
            size += packet.size - codec->data_at;
        if (begun >= 0 && packet.head == wanted && (packet.payload & codec->middle_mask) == codec->middle) {
            wanted += NEXT;
        } else if (begun < 0 && packet.head >> 32 == follows && (packet.payload & codec->first_mask) == codec->first) {
            if ((long long)(uint32_t)packet.head == timestamp || !(follows & 0xFFFF))
                break; /* no new picture, or the sequence wraps */
            begun = place;
            size = packet.size - codec->data_at;
            first = packet.payload;
            wanted = packet.head + NEXT;
        } else if (begun >= 0 && packet.head == (wanted | MARK) && (packet.payload & codec->last_mask) == codec->last
                 && wanted >> 48 == follows >> 16) {
            if (size + (is_h265 ? 6 : 5) > largest)
                break;
            timestamp = (uint32_t)packet.head;
            PyObject *unit = joined(packets, begun, place + 1, size, codec, first);
            if (unit == NULL || append(units, Py_BuildValue("(NL)", unit, timestamp)) < 0)
                goto failed;
            follows = (wanted >> 32) + 1;
            at = place + 1;
            begun = -1;
        } else {
            break;
        }
    }
    return Py_BuildValue("(Nn)", units, at);

failed:
    Py_DECREF(units);
    return NULL;
}

/* MPEG-TS (ISO/IEC 13818-1): the size of a packet, and of what follows its header. */
enum { TRANSPORT_PACKET = 188, PACKET_ROOM = 184, PICTURE_PID = 0x100 };

/* Write a packet's header; return the place after it. */
static unsigned char *write_header(unsigned char *to, int begins, int has_field, unsigned int counter) {
    to[0] = 0x47;
    to[1] = (unsigned char)((begins ? 0x40 : 0) | PICTURE_PID >> 8);
    to[2] = PICTURE_PID & 0xFF;
    to[3] = (unsigned char)((has_field ? 0x30 : 0x10) | (counter & 0x0F));
    return to + 4;
}

static unsigned char *write_bytes(unsigned char *to, const void *from, Py_ssize_t size) {
    memcpy(to, from, (size_t)size);
    return to + size;
}

/* Write the last packet, which has less than its room of data, behind a field that fills it. */
static void write_last(unsigned char *to, const unsigned char *data, Py_ssize_t size, unsigned int counter) {
    Py_ssize_t missing = PACKET_ROOM - size;
    to = write_header(to, 0, 1, counter);
    to[0] = (unsigned char)(missing - 1);
    if (missing > 1) {
        to[1] = 0;
        memset(to + 2, 0xFF, (size_t)(missing - 2));
    }
    memcpy(to + missing, data, (size_t)size);
}

static PyObject *transport_packets(PyObject *Py_UNUSED(module), PyObject *args) {
    Py_buffer begin, field, head, frame;
    unsigned int counter;
    PyObject *packets = NULL;
    if (!PyArg_ParseTuple(args, "y*y*y*y*I", &begin, &field, &head, &frame, &counter))
        return NULL;
    Py_ssize_t room = PACKET_ROOM - 1 - field.len - head.len;
    if (room < 0) {
        PyErr_SetString(PyExc_ValueError, "a frame's head does not fit into a packet");
        goto done;
    }
    const unsigned char *data = frame.buf;
    Py_ssize_t first = frame.len < room ? frame.len : room;
    Py_ssize_t left = frame.len - first;
    Py_ssize_t count = 1 + (left + PACKET_ROOM - 1) / PACKET_ROOM;
    packets = PyByteArray_FromStringAndSize(NULL, begin.len + count * TRANSPORT_PACKET);
    if (packets == NULL)
        goto done;
    unsigned char *to = write_bytes((unsigned char *)PyByteArray_AsString(packets), begin.buf, begin.len);
    to = write_header(to, 1, 1, counter++);
    *to++ = (unsigned char)(field.len + room - first);
    to = write_bytes(to, field.buf, field.len);
    memset(to, 0xFF, (size_t)(room - first));
    to = write_bytes(to + room - first, head.buf, head.len);
    to = write_bytes(to, data, first);
    for (data += first; left >= PACKET_ROOM; left -= PACKET_ROOM, data += PACKET_ROOM)
        to = write_bytes(write_header(to, 0, 0, counter++), data, PACKET_ROOM);
    if (left > 0)
        write_last(to, data, left, counter);

done:
    PyBuffer_Release(&begin);
    PyBuffer_Release(&field);
    PyBuffer_Release(&head);
    PyBuffer_Release(&frame);
    return packets;
}

static PyMethodDef functions[] = {
    {"packet_runs", packet_runs, METH_VARARGS, "Do the same as the function of drivers.rtsp.client.connection."},
    {"whole_slices", whole_slices, METH_VARARGS, "Do the same as the function of drivers.rtsp.depacketizer."},
    {"transport_packets", transport_packets, METH_VARARGS, "Do the same as that of the worker's transport_stream."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_fast", "The work of each packet of video, compiled.", 0, functions, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__fast(void) {
    return PyModuleDef_Init(&definition);
}
