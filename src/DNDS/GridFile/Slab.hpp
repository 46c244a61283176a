/// @file Slab.hpp
/// @brief A box of a file's elements and its place in this rank's memory, and functions that read and write such boxes:
///
/// - of plain binary files: numbers one after another, without a header of their own
/// - of HDF5 datasets of any name
/// - of fields for ParaView: uniform grids as VTKHDF ImageData, others as VTK's RectilinearGrid
#pragma once

#include "DNDS/Base/ExactAccumulator.hpp"
#include "DNDS/Base/Types.hpp"
#include "DNDS/Mpi/Communicator.hpp"

#include <array>
#include <bit>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace DNDS {

/// A box of elements. `Byte` is `void` where the file is read into memory, `const void` where memory is written.
template <class Byte>
struct BasicSlab {
    using Mask = std::conditional_t<std::is_const_v<Byte>, const std::uint8_t, std::uint8_t>;

    std::vector<index> start;   ///< first element along each dimension, in the file's order (slowest first)
    std::vector<index> count;   ///< number of elements along each dimension; any 0: nothing
    std::vector<index> strides; ///< between neighbours in memory, in elements; empty: contiguous, last one fastest
    ElementKind kind = ElementKind::Opaque;
    Byte *data = nullptr; ///< the element `start`
    Mask *mask = nullptr; ///< if given, 1 where the value is missing, else 0; strides as the data's

    /// A slab for reading can be written, too.
    operator BasicSlab<const void>() const requires(!std::is_const_v<Byte>) { // NOLINT: it only takes rights away
        return {start, count, strides, kind, data, mask};
    }

    /// The number of elements in the box.
    index elements() const {
        index product = 1;
        for (const index n : count)
            static_cast<void>(__builtin_mul_overflow(product, n, &product)); // `checkSlab` allows it beside a 0
        return product;
    }
};

using Slab = BasicSlab<void>;              ///< for reading
using WrittenSlab = BasicSlab<const void>; ///< for writing

/// A slab of memory, strides in elements of `T`. Local.
template <class T>
auto slabOf(T *data, std::vector<index> start, std::vector<index> count, // NOLINT: they are moved
            std::vector<index> strides = {}) {                           // NOLINT
    using Byte = std::conditional_t<std::is_const_v<T>, const void, void>;
    static_assert(elementKindOf<std::remove_const_t<T>>() != ElementKind::Opaque,
                  "files hold integers of 8 to 64 bits, float and double; give components a dimension of their own");
    return BasicSlab<Byte>{std::move(start), std::move(count), std::move(strides),
                           elementKindOf<std::remove_const_t<T>>(), data};
}

/// Checks the number of dimensions, that the box lies within `shape`, and that memory is of `kind` (Opaque: of any);
/// `what` names the variable. Local.
/// @throws ArgumentError, LayoutError.
void checkSlab(const WrittenSlab &slab, const std::vector<index> &shape, const std::string &what,
               ElementKind kind = ElementKind::Opaque);

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

/// The shape of a dataset. Collective: rank 0 reads it. @throws as `readHdfDataset`.
std::vector<index> hdfDatasetShape(CommunicatorView comm, const std::string &path, const std::string &dataset);

/// Reads this rank's boxes of a dataset of integers or floating-point numbers; HDF5 converts them to the memory type.
/// Collective; ranks read independently.
/// @throws on all ranks: ArgumentError for an unknown dataset, with a list of the known ones; LayoutError for boxes
/// outside it and data that are no numbers; DataError if the file cannot be read and for values that memory's type
/// cannot hold (integers may be rounded to floating-point numbers); NotBuiltError without HDF5.
void readHdfDataset(CommunicatorView comm, const std::string &path, const std::string &dataset,
                    std::span<const Slab> slabs);

/// Writes this rank's boxes as a dataset and creates the groups in its name. Creates the file or, with `append`, adds a
/// dataset to it. Collective. @throws on all ranks: LayoutError, DataError, NotBuiltError.
void writeHdfDataset(CommunicatorView comm, const std::string &path, const std::string &dataset,
                     const std::vector<index> &shape, ElementKind kind, std::span<const WrittenSlab> slabs,
                     bool append = false);

/// A field of the cells. Slabs are boxes of [z][y][x] cells, or [z][y][x][components].
struct VtkGridField {
    std::string name;
    index components = 1;
    ElementKind kind = ElementKind::Float64;
    std::vector<WrittenSlab> slabs;
};

/// The location of values on a uniform grid.
enum class VtkPlacement {
    Cells,  ///< at cells. VTK 9.1 cannot read them; 9.7 can
    Centres ///< at points in cell centres: VTK 9.1 reads them, too, except for grids of one cell in a direction
};

/// Writes a uniform grid of `cells` (x, y, z; 1 where it has no extent) as a VTKHDF ImageData file, complete or not
/// there. Collective; ranks write their own boxes. @throws on all ranks: ArgumentError, LayoutError for fields outside
/// the grid; DataError if the file cannot be written; NotBuiltError without HDF5.
///
/// Format: https://docs.vtk.org/en/latest/vtk_file_formats/vtkhdf_file_format/
void writeVtkImage(CommunicatorView comm, const std::string &path, const std::array<index, 3> &cells,
                   const std::array<real, 3> &origin, const std::array<real, 3> &spacing,
                   std::span<const VtkGridField> fields, VtkPlacement placement = VtkPlacement::Cells);

/// Writes a grid whose points have the coordinates x[i], y[j], z[k] (one more than cells; a single one where it has no
/// extent) as a .vtr file of VTK, with binary data appended: VTKHDF readers of VTK 9.1 know no rectilinear grids.
/// Collective. @throws as above.
void writeVtkRectilinear(CommunicatorView comm, const std::string &path, const std::array<std::vector<real>, 3> &points,
                         std::span<const VtkGridField> fields);

} // namespace DNDS
