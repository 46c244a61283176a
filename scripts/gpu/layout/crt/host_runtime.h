// Stands before the CUDA Toolkit's header of this name when kernels are compiled for scripts/gpu/layout.py: each object then
// holds, in a section `.dnds_layout`, the host's size of every argument of its kernels. Launches are compiled as before.
//
// The Toolkit's header is included twice, with a macro between, so that this one has no guard.
#include_next "crt/host_runtime.h"

#if defined(__cudaSetupArg) && !defined(DNDS_RECORD_ARGUMENT)

namespace dndsLayout {

/// `magic`, the number of the argument, its size in bytes, and the name of the launching function.
template <unsigned long length>
struct Record {
    char magic[8];
    unsigned int argument;
    unsigned int bytes;
    char function[length];
};

template <unsigned long length>
constexpr Record<length> record(const char (&function)[length], unsigned int argument, unsigned long bytes) {
    Record<length> made{{'D', 'N', 'D', 'S', 'A', 'R', 'G', '1'}, argument, static_cast<unsigned int>(bytes), {}};
    for (unsigned long k = 0; k < length; ++k)
        made.function[k] = function[k];
    return made;
}

/// The digits at the end of a parameter's name, `__par` and its number.
constexpr unsigned int numberOf(const char *name) {
    unsigned int number = 0;
    for (; *name != 0; ++name)
        number = *name >= '0' && *name <= '9' ? 10 * number + static_cast<unsigned int>(*name - '0') : 0;
    return number;
}

} // namespace dndsLayout

#define DNDS_RECORD_ARGUMENT(arg)                                                                                      \
    {                                                                                                                  \
        static constexpr auto dndsRecord __attribute__((used, section(".dnds_layout"))) =                              \
            dndsLayout::record(__func__, dndsLayout::numberOf(#arg), sizeof(arg));                                     \
    }
#undef __cudaSetupArg
#define __cudaSetupArg(arg, offset)                                                                                    \
    DNDS_RECORD_ARGUMENT(arg) __args_arr[__args_idx] = (void *)__cudaAddressOf(arg);                                   \
    ++__args_idx
#undef __cudaSetupArgSimple
#define __cudaSetupArgSimple(arg, offset)                                                                              \
    DNDS_RECORD_ARGUMENT(arg) __args_arr[__args_idx] = (void *)(char *)&arg;                                           \
    ++__args_idx

#endif
