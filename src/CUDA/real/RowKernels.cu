#include "DNDS/Base/Error.hpp"
#include "DNDS/Device/RowKernelBodies.hpp"

#include <cuda_runtime.h>

#include <algorithm>

namespace DNDS::Device {

namespace {

// The bodies are those of the host (RowKernelBodies.hpp): this file only launches them.
constexpr std::uint32_t threads = copyThreads;

/// The largest launch in one dimension.
constexpr std::uint64_t maxBlocks = 2147483647;

// One block for each tile of the table.
__global__ void __launch_bounds__(threads) copyRowsKernel(CopyTable table) {
    copyTile(table, blockIdx.x, threadIdx.x, blockDim.x);
}

// Strided loops: the number of blocks is limited, the number of rows is not.
template <class T>
__global__ void __launch_bounds__(threads) combineRowsKernel(CombineTable table) {
    const std::uint64_t all = std::uint64_t{gridDim.x} * blockDim.x;
    const std::uint64_t needed = table.rows * table.lanes;
    for (std::uint64_t thread = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; thread < needed; thread += all)
        combineRow<T>(table, thread);
}

__global__ void __launch_bounds__(threads) compareRowsKernel(CombineTable table, std::uint32_t *differs) {
    const std::uint64_t all = std::uint64_t{gridDim.x} * blockDim.x;
    const std::uint64_t needed = table.rows * table.lanes;
    for (std::uint64_t thread = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; thread < needed; thread += all)
        compareRow(table, differs, thread);
}

cudaStream_t native(StreamHandle stream) { return reinterpret_cast<cudaStream_t>(stream); }

// The loops of the kernels cover what exceeds one launch.
unsigned blocksFor(std::uint64_t count) {
    return static_cast<unsigned>(std::min((count + threads - 1) / threads, maxBlocks));
}

} // namespace

void copyRows(const CopyTable &table, StreamHandle stream) {
    requireDevice("copy rows");
    DNDS_CHECK(table.tiles <= maxBlocks, ArgumentError, "{} tiles are more than one launch can copy", table.tiles);
    if (table.tiles == 0)
        return;
    copyRowsKernel<<<static_cast<unsigned>(table.tiles), threads, 0, native(stream)>>>(table);
    checkLaunch("copyRows");
}

void combineRows(const CombineTable &table, StreamHandle stream) {
    requireDevice("combine rows");
    if (table.rows == 0)
        return;
    forElementKind(table.kind, [&]<class T>() {
        combineRowsKernel<T><<<blocksFor(table.rows * table.lanes), threads, 0, native(stream)>>>(table);
        checkLaunch("combineRows");
    });
}

void compareRows(const CombineTable &table, std::uint32_t *differs, StreamHandle stream) {
    requireDevice("compare rows");
    if (table.rows == 0)
        return;
    compareRowsKernel<<<blocksFor(table.rows * table.lanes), threads, 0, native(stream)>>>(table, differs);
    checkLaunch("compareRows");
}

} // namespace DNDS::Device
