// What libFuzzer calls; scripts/fuzz.sh builds and runs it.

#include "fuzz/ReadBytes.hpp"

#include "DNDS/Mpi/Communicator.hpp"

#include <cstddef>
#include <cstdint>

extern "C" int LLVMFuzzerInitialize(int *argc, char ***argv) {
    static const DNDS::MpiSession mpi(*argc, *argv);
    return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
    DNDS::Geom::fuzz::readBytes({reinterpret_cast<const char *>(data), size}); // whatever it throws is a finding
    return 0;
}
