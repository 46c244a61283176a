/// @file NetcdfWriterFile.hpp
/// @brief The state of a NetcdfWriter. Part of it; NetcdfCreation.cpp has declarations, creation and appending,
/// NetcdfSlabs.cpp the writing of boxes.
#pragma once

#include "DNDS/Base/Error.hpp"
#include "DNDS/GridFile/NetcdfCalls.hpp"
#include "DNDS/GridFile/Packing.hpp"

#include <cstddef>
#include <cstdint>
#include <exception>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace DNDS {

namespace Detail {

/// More than any number of elements.
constexpr auto endless = static_cast<index>(~std::uint64_t{0} >> 1U);

/// The course of one call of `write` on this rank.
struct WritePlan {
    const NetcdfVariable *variable = nullptr;
    NetcdfPlace place;
    Packing packing;
    bool raw = false;
    std::string what;
    std::size_t elementBytes = 1;

    /// The numbers of a chunk as the file has them.
    void numbersOf(const WrittenSlab &slab, const SlabChunk &chunk, std::byte *to) const {
        if (raw)
            gatherChunk(slab, chunk, elementBytes, to);
        else
            packChunk(packing, slab, chunk, to, what);
    }
};

} // namespace Detail

/// All state. Declarations are collected on each rank; `define` compares them, creates the file (`id` >= 0), and ends
/// the declarations.
struct NetcdfWriter::File {
    CommunicatorView comm;
    std::string path;
    std::string temporary;
    NetcdfWriteOptions options;
    /// As declared, or as read with `append`; lengths of unlimited dimensions grow with writes.
    NetcdfContent content;
    /// Values that `define` writes, by the name of the variable.
    std::vector<std::pair<std::string, std::vector<real>>> coordinates;
    /// [content.variables]
    std::vector<Detail::NetcdfPlace> places;
    std::vector<std::string> notes;
    std::vector<std::vector<index>> extents; ///< NetCDF-4: the written extents of each variable; else empty
    std::vector<index> writtenEnds;          ///< classic files: the written records of each variable; else empty
    int id = -1;
    bool closed = false;
    /// More in the destructor: an exception destroys the writer, perhaps on this rank only.
    int exceptionsAtStart = std::uncaught_exceptions();

    // A new file gets its name when it is complete.
    File(CommunicatorView ranks, std::string to, const NetcdfWriteOptions &chosen)
        : comm(ranks), path(std::move(to)), temporary(chosen.append ? path : path + ".part"), options(chosen) {}

    void declare(NetcdfDimension dimension);
    void declare(NetcdfVariable variable);
    void requireDeclaring() const {
        DNDS_CHECK(id < 0, StateError,
                   "{}: declarations precede the first write, and files that are appended to have "
                   "theirs",
                   path);
    }
    NetcdfFormat chooseFormat();
    void checkFormat(NetcdfFormat format) const;
    /// Throws LayoutError if a number does not fit the attribute's type. `of`: whose it is, as text.
    void checkAttribute(const std::string &of, const NetcdfAttribute &attribute) const;
    void openExisting();
    void create(NetcdfFormat format);
    int defineVariable(const NetcdfVariable &variable, const std::vector<int> &dimensions);
    int defineAll();
    void prepare(std::string_view name, std::span<const WrittenSlab> slabs, bool raw, Detail::WritePlan &plan) const;
    int put(const Detail::WritePlan &plan, const WrittenSlab *slab, const Detail::SlabChunk &chunk,
            std::exception_ptr &failure, std::vector<std::byte> &buffer) const;
    void putScalar(const Detail::WritePlan &plan, std::span<const WrittenSlab> slabs);
    void putAll(const Detail::WritePlan &plan, std::span<const WrittenSlab> slabs);
    void grow(const Detail::WritePlan &plan, std::span<const WrittenSlab> slabs);
    void writeTogether(bool hdf);
    void fillUpTo(std::size_t variable, index end);
    void reserve(const Detail::WritePlan &plan, std::span<const WrittenSlab> slabs);
};

} // namespace DNDS
