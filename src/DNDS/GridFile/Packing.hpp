/// @file Packing.hpp
/// @brief The encoding of values by the numbers of a NetCDF variable: unsigned bytes, missing values, scale and offset.
/// Part of NetcdfReader and NetcdfWriter.
///
/// Conventions: NetCDF User's Guide, appendix A, and CF 1.8, sections 2.5.1 and 8.1.
#pragma once

#include "DNDS/GridFile/Netcdf.hpp"
#include "DNDS/GridFile/SlabChunks.hpp"

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace DNDS::Detail {

/// A number in the packed type.
using PackedNumber = std::array<std::byte, 8>;

/// All that is needed to convert a variable's numbers.
struct Packing {
    ElementKind kind = ElementKind::Opaque; ///< kind of the file's numbers, after `_Unsigned`
    ElementKind unpackedKind = kind;        ///< the widest of this, `scale_factor` and `add_offset`
    bool scaled = false;
    real scale = 1;
    real offset = 0;
    bool declared = false;             ///< whether the first of `missing` is in the file, not the type's default
    std::vector<PackedNumber> missing; ///< `_FillValue` first
    std::optional<PackedNumber> least; ///< smaller ones are missing
    std::optional<PackedNumber> most;  ///< larger ones
    std::vector<std::string> notes;    ///< attributes that the type cannot hold
};

/// Local. The variable's numbers must be numbers.
Packing packingOf(const NetcdfVariable &variable);

/// The (first) number of an attribute in the type of `kind`; nothing if the attribute holds none that fits.
std::optional<PackedNumber> packedNumber(const NetcdfAttribute &attribute, std::size_t which, ElementKind kind);

/// Throws LayoutError if memory of `memory` cannot take the values: floating-point values need floating-point
/// memory.
void checkUnpacking(const Packing &packing, ElementKind memory, const std::string &what);
/// The same for writing: only packed variables round.
void checkPacking(const Packing &packing, ElementKind memory, const std::string &what);

/// Values of a chunk, from numbers of the file to the slab's memory and mask. @throws DataError for missing values
/// without a place, and integers that do not fit.
void unpackChunk(const Packing &packing, const std::byte *numbers, const Slab &slab, const SlabChunk &chunk,
                 std::optional<real> fill, const std::string &what);
/// Numbers for the file from the slab's memory and mask. @throws DataError for values that do not fit.
void packChunk(const Packing &packing, const WrittenSlab &slab, const SlabChunk &chunk, std::byte *numbers,
               const std::string &what);

} // namespace DNDS::Detail
