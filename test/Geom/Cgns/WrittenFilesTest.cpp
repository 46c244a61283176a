// Files written here, for what the public meshes lack: elements.

#include "DNDS/Geom/Cgns/Cgns.hpp"

#include "Geom/Cgns/BoxGrid.hpp"

#include <gtest/gtest.h>

#include <map>
#include <set>

namespace DNDS::Geom {
namespace {

using namespace test;

// ---------------------------------------------------------------------------------------------------------------------
// Mixed sections

/// Hexahedra, prisms and tetrahedra, in turn, as lists of type and nodes.
std::vector<Ints> mixedElements(const Grid &grid) {
    std::vector<Ints> elements;
    grid.forEachCell([&](const std::array<int, 8> &v, int turn) {
        const auto add = [&](int type, std::initializer_list<std::size_t> corners) {
            Ints element{type};
            for (const std::size_t corner : corners)
                element.push_back(v[corner]);
            elements.push_back(element);
        };
        if (turn % 3 == 0) {
            add(17, {0, 1, 2, 3, 4, 5, 6, 7});
        } else if (turn % 3 == 1) {
            add(14, {0, 1, 2, 4, 5, 6});
            add(14, {0, 2, 3, 4, 6, 7});
        } else {
            for (const auto &[a, b] :
                 {std::pair<std::size_t, std::size_t>{1, 2}, {2, 3}, {3, 7}, {7, 4}, {4, 5}, {5, 1}})
                add(10, {0, a, b, 6});
        }
    });
    return elements;
}

template <class Numbers>
std::pair<Numbers, Numbers> flatten(const std::vector<Ints> &elements) {
    Numbers numbers;
    Numbers offsets{0};
    for (const Ints &element : elements) {
        numbers.insert(numbers.end(), element.begin(), element.end());
        offsets.push_back(static_cast<typename Numbers::value_type>(numbers.size()));
    }
    return {numbers, offsets};
}

TEST(CgnsWritten, MixedSectionsOfAllAgesAreTheSame) {
    const Grid grid{4, 3, 5};
    const auto elements = mixedElements(grid);
    const auto count = static_cast<std::int64_t>(elements.size());
    for (const FileType type : bothTypes) {
        const WrittenFile old;
        old.write(type, 3.1F, [&](CgnsFile &file) {
            const double zone = file.zone(file.base("Base", 3, 3), "Zone", grid.nodes(), count);
            file.coordinates(zone, grid.points());
            file.section(zone, "All", 20, 1, count, flatten<Ints>(elements).first);
        });
        const WrittenFile recent;
        recent.write(type, 4.2F, [&](CgnsFile &file) {
            const double zone = file.zone(file.base("Base", 3, 3), "Zone", grid.nodes(), count);
            file.coordinates(zone, grid.points());
            const auto [numbers, offsets] = flatten<Longs>(elements);
            file.section(zone, "All", 20, 1, count, numbers, offsets);
        });
        const SourceMesh mesh = readWhole(old);
        EXPECT_NEAR(test::measure(mesh), grid.cells(), 1e-12);
        EXPECT_EQ(test::countNames(mesh.cells),
                  (std::map<std::string, index>{{"HEXA_8", 20}, {"PENTA_6", 40}, {"TETRA_4", 120}}));
        EXPECT_TRUE(mesh.patches.empty());
        EXPECT_TRUE(mesh.warnings.empty());
        test::expectSame(mesh, readWhole(recent));
    }
}

TEST(CgnsWritten, SectionsComeInOrderOfTheirNumbers) {
    const Grid grid{2, 2, 3};
    const WrittenFile file;
    file.write(FileType::Hdf5, 3.1F, [&](CgnsFile &f) {
        const double zone = f.zone(f.base("Base", 3, 3), "Zone", grid.nodes(), grid.cells());
        f.coordinates(zone, grid.points());
        const Ints all = grid.hexahedra();
        f.section(zone, "High", 7, 19, 24, grid.sideX(true));
        f.section(zone, "Second", 17, 11, 18, Ints(all.begin() + 32, all.end()));
        f.section(zone, "Low", 7, 1, 6, grid.sideX(false));
        f.section(zone, "First", 17, 7, 10, Ints(all.begin(), all.begin() + 32));
    });
    const SourceMesh mesh = readWhole(file);
    std::vector<index> cellIds;
    for (index id = 7; id <= 18; id++)
        cellIds.push_back(id);
    EXPECT_EQ(mesh.cells.fileIds, cellIds);
    std::vector<index> nodes;
    for (const int node : grid.hexahedra())
        nodes.push_back(node - 1);
    EXPECT_EQ(mesh.cells.nodes, nodes);
    // Without boundary conditions the sections of faces are the patches.
    ASSERT_EQ(mesh.patches.size(), 2U);
    EXPECT_EQ(facesOf(mesh, "Low"), 6);
    EXPECT_EQ(facesOf(mesh, "High"), 6);
    EXPECT_EQ(mesh.faces.fileIds, (std::vector<index>{1, 2, 3, 4, 5, 6, 19, 20, 21, 22, 23, 24}));
}

TEST(CgnsWritten, PatchesOfMixedSectionsHoldTheirFacesAlone) {
    const Grid grid{3, 1, 1};
    const WrittenFile file;
    file.write(FileType::Adf, 3.1F, [&](CgnsFile &f) {
        const double zone = f.zone(f.base("Base", 3, 3), "Zone", grid.nodes(), 3);
        f.coordinates(zone, grid.points());
        Ints faces{7};
        const Ints low = grid.sideX(false);
        faces.insert(faces.end(), low.begin(), low.end());
        faces.insert(faces.end(), {5, 1, 2, 3, 3, 1, 2}); // a triangle and a line
        f.section(zone, "Cells", 17, 1, 3, grid.hexahedra());
        f.section(zone, "Faces", 20, 4, 6, faces);
    });
    const SourceMesh mesh = readWhole(file);
    ASSERT_EQ(mesh.patches.size(), 1U);
    EXPECT_EQ(facesOf(mesh, "Faces"), 2);
    EXPECT_EQ(mesh.cells.globalSize, 3);
    EXPECT_EQ(mesh.notes.size(), 1U); // of the line
    EXPECT_EQ(mesh.warnings.size(), 0U);
}

TEST(CgnsWritten, PolygonsInMixedSectionsOfOldFiles) {
    const WrittenFile file;
    file.write(FileType::Adf, 3.1F, [&](CgnsFile &f) {
        const double zone = f.zone(f.base("Base", 2, 2), "Zone", 6, 2);
        f.coordinates(zone, {{0, 0, 0}, {2, 0, 0}, {2, 1, 0}, {1, 2, 0}, {0, 1, 0}, {-1, 0, 0}}, 2);
        f.section(zone, "Cells", 20, 1, 2, Ints{22 + 5, 1, 2, 3, 4, 5, 5, 1, 5, 6});
    });
    const SourceMesh mesh = readWhole(file);
    EXPECT_EQ(test::countNames(mesh.cells), (std::map<std::string, index>{{"NGON_n", 1}, {"TRI_3", 1}}));
    EXPECT_NEAR(test::measure(mesh), 3.5, 1e-14);
}

// ---------------------------------------------------------------------------------------------------------------------
// Polyhedra

/// The faces of a grid of boxes, each once, with the cells on both sides (counted from 1, 0 for none).
struct FaceList {
    std::vector<Ints> faces;
    std::vector<std::array<int, 2>> cells;
    std::vector<Ints> facesOfCells; ///< counted from 1, negative where they look inward

    explicit FaceList(const Grid &grid) {
        std::map<std::set<int>, std::size_t> known;
        int cell = 0;
        grid.forEachCell([&](const std::array<int, 8> &v, int) {
            cell++;
            facesOfCells.emplace_back();
            for (const ElementFace &face : elementInfo(ElementType::Hexa8).faces) {
                Ints corners;
                for (std::size_t k = 0; k < 4; k++)
                    corners.push_back(v[face.corner[k]]);
                const auto [at, isNew] = known.try_emplace({corners.begin(), corners.end()}, faces.size());
                const int number = static_cast<int>(at->second) + 1;
                if (isNew) {
                    faces.push_back(corners);
                    cells.push_back({cell, 0});
                } else {
                    cells[at->second][1] = cell;
                }
                facesOfCells.back().push_back(isNew ? number : -number);
            }
        });
    }
    int size() const { return static_cast<int>(faces.size()); }
    std::vector<Ints> withCounts(const std::vector<Ints> &rows) const {
        std::vector<Ints> all;
        for (const Ints &row : rows) {
            all.push_back({static_cast<int>(row.size())});
            all.back().insert(all.back().end(), row.begin(), row.end());
        }
        return all;
    }
    Ints parents(int firstCell) const {
        Ints all;
        for (std::size_t side = 0; side < 2; side++)
            for (const auto &pair : cells)
                all.push_back(pair[side] == 0 ? 0 : pair[side] + firstCell - 1);
        return all;
    }
    /// Boundary faces at x = 0.
    Ints low(const Grid &grid) const {
        Ints all;
        for (std::size_t k = 0; k < faces.size(); k++) {
            const auto atLow = [&](int node) { return (node - 1) % (grid.nx + 1) == 0; };
            if (std::all_of(faces[k].begin(), faces[k].end(), atLow))
                all.push_back(static_cast<int>(k) + 1);
        }
        return all;
    }
};

void expectPolyhedra(const SourceMesh &mesh, const Grid &grid) {
    EXPECT_EQ(test::countNames(mesh.cells), (std::map<std::string, index>{{"NFACE_n", grid.cells()}}));
    EXPECT_NEAR(test::measure(mesh), grid.cells(), 1e-12);
    SourceMesh one = mesh; // each cell by itself has the volume of a box, so no two are mixed up
    for (index cell = 0; cell < mesh.cells.size(); cell++) {
        const auto nodes = mesh.cells.nodesOf(cell);
        one.cells.types = {ElementType::Polyhedron};
        one.cells.nodes.assign(nodes.begin(), nodes.end());
        one.cells.starts = {0, static_cast<index>(nodes.size())};
        EXPECT_NEAR(test::measure(one), 1.0, 1e-12) << "cell " << cell;
    }
    EXPECT_EQ(facesOf(mesh, "low"), grid.ny * grid.nz);
}

TEST(CgnsWritten, PolyhedraOfAllAges) {
    const Grid grid{3, 2, 4};
    const FaceList list(grid);
    for (const FileType type : bothTypes)
        for (const bool recent : {false, true})
            for (const bool cellsFirst : {false, true}) {
                const WrittenFile file;
                file.write(type, recent ? 4.0F : 3.3F, [&](CgnsFile &f) {
                    const double zone = f.zone(f.base("Base", 3, 3), "Zone", grid.nodes(), grid.cells());
                    f.coordinates(zone, grid.points());
                    const int firstFace = cellsFirst ? grid.cells() + 1 : 1;
                    const int firstCell = cellsFirst ? 1 : list.size() + 1;
                    std::vector<Ints> cells = list.facesOfCells;
                    for (Ints &cell : cells)
                        for (int &face : cell)
                            face += face > 0 ? firstFace - 1 : 1 - firstFace;
                    const auto faces = flatten<Ints>(recent ? list.faces : list.withCounts(list.faces));
                    const auto inCells = flatten<Longs>(recent ? cells : list.withCounts(cells));
                    f.section(zone, "Faces", 22, firstFace, firstFace + list.size() - 1, faces.first,
                              recent ? test::Data(faces.second) : test::Data{});
                    f.section(zone, "Cells", 23, firstCell, firstCell + grid.cells() - 1, inCells.first,
                              recent ? test::Data(inCells.second) : test::Data{});
                    Ints low = list.low(grid);
                    for (int &face : low)
                        face += firstFace - 1;
                    f.condition(zone, "low", "BCWall", "PointList", low, "FaceCenter");
                });
                expectPolyhedra(readWhole(file), grid);
            }
}

TEST(CgnsWritten, PolyhedraOfParentsAlone) {
    const Grid grid{3, 2, 4};
    const FaceList list(grid);
    for (const int firstCell : {1, list.size() + 1}) {
        const WrittenFile file;
        file.write(FileType::Hdf5, 4.2F, [&](CgnsFile &f) {
            const double zone = f.zone(f.base("Base", 3, 3), "Zone", grid.nodes(), grid.cells());
            f.coordinates(zone, grid.points());
            const auto faces = flatten<Ints>(list.faces);
            const double section = f.section(zone, "Faces", 22, 1, list.size(), faces.first, faces.second);
            f.add(section, "ParentElements", "DataArray_t", list.parents(firstCell), {list.size(), 2});
            f.condition(zone, "low", "BCWall", "PointList", list.low(grid), "FaceCenter");
        });
        const SourceMesh mesh = readWhole(file);
        expectPolyhedra(mesh, grid);
        EXPECT_EQ(mesh.cells.fileIds.front(), 1);
    }
}

TEST(CgnsWritten, PolygonsAsCellsOfTwoDimensions) {
    const WrittenFile file;
    file.write(FileType::Hdf5, 4.0F, [&](CgnsFile &f) {
        const double zone = f.zone(f.base("Base", 2, 3), "Zone", 6, 2);
        f.coordinates(zone, {{0, 0, 0}, {2, 0, 0}, {2, 1, 0}, {1, 2, 0}, {0, 1, 0}, {-1, 0, 0}});
        f.section(zone, "Cells", 22, 1, 2, Ints{1, 2, 3, 4, 5, 1, 5, 6}, Ints{0, 5, 8});
        f.section(zone, "Edges", 3, 3, 4, Ints{1, 2, 2, 3});
        f.condition(zone, "edges", "BCWall", "ElementRange", Ints{3, 4});
    });
    const SourceMesh mesh = readWhole(file);
    EXPECT_EQ(test::countNames(mesh.cells), (std::map<std::string, index>{{"NGON_n", 2}}));
    EXPECT_NEAR(test::measure(mesh), 3.5, 1e-14);
    EXPECT_EQ(facesOf(mesh, "edges"), 2);
    EXPECT_EQ(mesh.physicalDimension, 3);
}

} // namespace
} // namespace DNDS::Geom
