#include "Geom/Ugrid/UgridFiles.hpp"

#include "DNDS/Geom/File/ElementBlocks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

namespace DNDS::Geom::test {

namespace {

constexpr std::array faceTypes{ElementType::Tri3, ElementType::Quad4};
constexpr std::array cellTypes{ElementType::Tetra4, ElementType::Pyra5, ElementType::Penta6, ElementType::Hexa8};

class UgridBytes {
  public:
    explicit UgridBytes(const UgridFileOptions &options) : options_(options) {}

    void integer(index value) {
        if (options_.text)
            bytes_ += fmt::format("{} ", value);
        else if (options_.integerBytes == 4)
            append(bytes_, static_cast<std::int32_t>(value));
        else
            append(bytes_, static_cast<std::int64_t>(value));
    }
    void number(real value) {
        if (options_.text)
            bytes_ += fmt::format("{:.17g} ", value);
        else if (options_.realBytes == 4)
            append(bytes_, static_cast<float>(value));
        else
            append(bytes_, value);
    }
    void endLine() { bytes_ += options_.text ? "\n" : ""; }
    void endRecord() {
        const std::size_t longest = options_.subrecord > 0 ? options_.subrecord : bytes_.size();
        for (std::size_t at = 0; options_.records && at < bytes_.size(); at += longest) {
            const std::size_t size = std::min(longest, bytes_.size() - at);
            const auto mark = static_cast<std::int32_t>(size);
            append(file_, at + size < bytes_.size() ? -mark : mark);
            file_ += bytes_.substr(at, size);
            append(file_, at > 0 ? -mark : mark);
        }
        file_ += options_.records ? "" : bytes_;
        bytes_.clear();
    }
    std::string take() { return std::move(file_); }

  private:
    template <class T>
    void append(std::string &to, T value) const {
        auto bytes = std::bit_cast<std::array<char, sizeof(T)>>(value);
        if (options_.bigEndian == (std::endian::native == std::endian::little))
            std::reverse(bytes.begin(), bytes.end());
        to.append(bytes.data(), bytes.size());
    }

    UgridFileOptions options_;
    std::string bytes_; ///< the current record
    std::string file_;
};

/// The base of a pyramid is 1, 4, 5, 2 in the file and 1, 2, 3, 4 in CGNS; the same permutation both ways.
constexpr std::array<std::size_t, 5> pyramid{0, 3, 4, 1, 2};

template <class Visit>
void forEachOf(const ElementBlock &block, ElementType type, Visit &&visit) {
    for (std::size_t e = 0; e < block.types.size(); e++)
        if (block.types[e] == type)
            visit(e, block.nodesOf(static_cast<index>(e)));
}

} // namespace

std::string ugridFile(const SourceMesh &mesh, const UgridFileOptions &options) {
    UgridBytes out(options);
    out.integer(mesh.nodes());
    const auto writeCounts = [&](const ElementBlock &block, auto &&types) {
        for (const ElementType type : types)
            out.integer(std::ranges::count(block.types, type));
    };
    writeCounts(mesh.faces, faceTypes);
    writeCounts(mesh.cells, cellTypes);
    out.endLine();
    out.endRecord();
    for (const auto &point : mesh.coordinates) {
        for (const real x : point)
            out.number(x);
        out.endLine();
    }
    const auto writeElements = [&](const ElementBlock &block, auto &&types) {
        for (const ElementType type : types)
            forEachOf(block, type, [&](std::size_t, std::span<const index> nodes) {
                for (std::size_t k = 0; k < nodes.size(); k++)
                    out.integer(nodes[type == ElementType::Pyra5 ? pyramid[k] : k] + 1);
                out.endLine();
            });
    };
    writeElements(mesh.faces, faceTypes);
    for (const ElementType type : faceTypes)
        forEachOf(mesh.faces, type, [&](std::size_t face, std::span<const index>) {
            out.integer(mesh.faceMarks[face] + 1);
            out.endLine();
        });
    writeElements(mesh.cells, cellTypes);
    out.endRecord();
    return out.take();
}

namespace {

/// Reorders elements by type, which ascends in the order of UGRID, and numbers them from `firstId` on.
std::vector<std::size_t> sortBlock(ElementBlock &block, index firstId) {
    std::vector<std::size_t> order(block.types.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(order, {}, [&](std::size_t e) { return block.types[e]; });
    ElementBlock sorted;
    for (const std::size_t e : order)
        appendElement(sorted, block.types[e], block.nodesOf(static_cast<index>(e)), firstId++);
    sorted.globalSize = block.globalSize;
    block = std::move(sorted);
    return order;
}

} // namespace

SourceMesh sortedByType(SourceMesh mesh) {
    sortBlock(mesh.cells, 1);
    const std::vector<int> marks = mesh.faceMarks;
    const std::vector<std::size_t> order = sortBlock(mesh.faces, mesh.cells.size() + 1);
    for (std::size_t f = 0; f < order.size(); f++)
        mesh.faceMarks[f] = marks[order[f]];
    return mesh;
}

} // namespace DNDS::Geom::test
