/* A program that runs recorded launches on buffers of exactly their size, so that a sanitiser sees every stray access. */
#pragma once

#include "host.h"

#include <fstream>
#include <utility>
#include <vector>

using Launch = void (*)(unsigned, unsigned, bool, void **);

template <class T> static T taken(std::istream &from)
{
    T value;
    from.read(reinterpret_cast<char *>(&value), sizeof(T));
    return value;
}

static int replay(const Launch *kernels, int count, char **arguments)
{
    if (count != 3)
        return 2;
    std::ifstream from(arguments[1], std::ios::binary);
    std::vector<std::pair<char *, uint64_t>> buffers(taken<uint32_t>(from));
    for (auto &[data, size] : buffers) {
        size = taken<uint64_t>(from);
        data = new char[size];
        from.read(data, size);
    }
    for (uint32_t left = taken<uint32_t>(from); left > 0; left--) {
        const uint32_t kernel = taken<uint32_t>(from), blocks = taken<uint32_t>(from), threads = taken<uint32_t>(from);
        const bool barriers = taken<uint32_t>(from);
        std::vector<std::pair<uint64_t, uint64_t>> values(taken<uint32_t>(from));
        std::vector<void *> given;
        for (auto &value : values) {
            const int32_t buffer = taken<int32_t>(from);
            value = {taken<uint64_t>(from), taken<uint64_t>(from)};
            given.push_back(buffer < 0 ? static_cast<void *>(&value) : static_cast<void *>(&buffers[buffer].first));
        }
        kernels[kernel](blocks, threads, barriers, given.data());
    }
    std::ofstream to(arguments[2], std::ios::binary);
    for (auto &[data, size] : buffers) {
        to.write(data, size);
        delete[] data;
    }
    return 0;
}
