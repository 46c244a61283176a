/// @file RawFile.hpp
/// @brief Boxes of plain binary files: numbers one after another, without a header of their own.
#pragma once

#include "DNDS/GridFile/Slab.hpp"
#include "DNDS/Mpi/Communicator.hpp"

#include <bit>
#include <span>
#include <string>
#include <vector>

namespace DNDS {

/// The layout of the file.
struct RawFileLayout {
    std::vector<index> shape; ///< slowest dimension first
    ElementKind kind = ElementKind::Float64;
    index header = 0; ///< bytes before the first element
    std::endian order = std::endian::native;
};

/// Reads this rank's boxes. Memory has the file's type. Collective; ranks read independently.
/// @throws on all ranks: LayoutError for other types and boxes outside the shape; DataError if the file is missing
/// or its size is not `header` plus the bytes of the shape.
void readRawFile(CommunicatorView comm, const std::string &path, const RawFileLayout &layout,
                 std::span<const Slab> slabs);

/// Writes this rank's boxes, which should cover the shape, as `path` + ".part", then renames the file: a file at `path`
/// is complete. The header is filled with zeros. Collective. @throws as above; DataError if it cannot be written.
void writeRawFile(CommunicatorView comm, const std::string &path, const RawFileLayout &layout,
                  std::span<const WrittenSlab> slabs);

} // namespace DNDS
