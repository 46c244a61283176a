// The kernels of RowKernels.hpp for back ends that use the host compiler: one thread acts as a block.

#include "DNDS/Device/RowKernelBodies.hpp"

namespace DNDS::Device {

void copyRows(const CopyTable &table, StreamHandle stream) {
    // The table is copied into the kernel: it may run after the caller has returned.
    launchHostKernel(stream, static_cast<index>(table.tiles), [table](index first, index last) {
        for (index tile = first; tile < last; ++tile)
            copyTile(table, static_cast<std::uint64_t>(tile), 0, 1);
    });
}

// A thread of the launch stays one of `lanes` that share a row, so that the split of rows is tested here, too.
void combineRows(const CombineTable &table, StreamHandle stream) {
    forElementKind(table.kind, [&]<class T>() {
        launchHostKernel(stream, static_cast<index>(table.rows * table.lanes), [table](index first, index last) {
            for (index thread = first; thread < last; ++thread)
                combineRow<T>(table, static_cast<std::uint64_t>(thread));
        });
    });
}

void compareRows(const CombineTable &table, std::uint32_t *differs, StreamHandle stream) {
    launchHostKernel(stream, static_cast<index>(table.rows * table.lanes), [table, differs](index first, index last) {
        for (index thread = first; thread < last; ++thread)
            compareRow(table, differs, static_cast<std::uint64_t>(thread));
    });
}

} // namespace DNDS::Device
