#include "DNDS/Geom/File/CellFaces.hpp"

#include <algorithm>
#include <tuple>

namespace DNDS::Geom {

// Corners of inward faces are reversed, so that all normals point outwards.
void appendFace(std::vector<index> &to, std::span<const index> corners, bool inward) {
    to.push_back(static_cast<index>(corners.size()));
    if (inward)
        to.insert(to.end(), corners.rbegin(), corners.rend());
    else
        to.insert(to.end(), corners.begin(), corners.end());
}

void appendFaceOfCell(std::vector<index> &to, index cell, index face, std::span<const index> corners, bool inward) {
    to.insert(to.end(), {cell, face});
    appendFace(to, corners, inward);
}

/// O(n log n) for n faces. The order of faces within a cell is that of their numbers, independent of the order of
/// arrival.
/// Cells without a face get an empty row, which callers report. Corners are copied once, from the received words to
/// the block.
ElementBlock polyhedraOfFaces(std::span<const index> words, index first, index count) {
    struct Record {
        index cell;
        index face;
        std::size_t at; ///< position of the number of corners
    };
    std::vector<Record> records;
    for (std::size_t i = 0; i < words.size(); i += static_cast<std::size_t>(words[i + 2]) + 3)
        records.push_back({words[i], words[i + 1], i + 2});
    std::stable_sort(records.begin(), records.end(), [](const Record &a, const Record &b) {
        return std::tie(a.cell, a.face) < std::tie(b.cell, b.face);
    });
    ElementBlock cells;
    auto next = records.begin();
    for (index cell = first; cell < first + count; cell++) {
        for (; next != records.end() && next->cell == cell; ++next) {
            const auto face = words.subspan(next->at, static_cast<std::size_t>(words[next->at]) + 1);
            cells.nodes.insert(cells.nodes.end(), face.begin(), face.end());
        }
        cells.types.push_back(ElementType::Polyhedron);
        cells.starts.push_back(static_cast<index>(cells.nodes.size()));
        cells.fileIds.push_back(cell + 1);
    }
    return cells;
}

} // namespace DNDS::Geom
