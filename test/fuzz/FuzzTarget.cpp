// Entry points of libFuzzer; scripts/fuzz.sh builds and runs it.

#include "fuzz/ReadBytes.hpp"

#include "DNDS/Mpi/Communicator.hpp"

#ifdef DNDS_FUZZ_CHECKPOINTS
#include "fuzz/CheckpointBytes.hpp"
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

extern "C" int LLVMFuzzerInitialize(int *argc, char ***argv) {
    static const DNDS::MpiSession mpi(*argc, *argv);
    return 0;
}

#ifdef DNDS_FUZZ_CHECKPOINTS
extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t *data, std::size_t size, std::size_t most);

/// Repairs checksums except in one case of eight: otherwise no later check would be reached.
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t *data, std::size_t size, std::size_t most, unsigned seed) {
    size = LLVMFuzzerMutate(data, size, most);
    std::string bytes(reinterpret_cast<const char *>(data), size);
    if (seed % 8 != 0 && bytes.starts_with(DNDS::Geom::fuzz::checkpointBegin)) {
        DNDS::Geom::fuzz::repairChecksums(bytes);
        std::copy(bytes.begin(), bytes.end(), data); // of the same length
    }
    return size;
}
#endif

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
    DNDS::Geom::fuzz::readBytes({reinterpret_cast<const char *>(data), size}); // whatever it throws is a finding
    return 0;
}
