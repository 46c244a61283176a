#include "fuzz/CgnsTree.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <sstream>
#include <type_traits>

#include <unistd.h>

namespace DNDS::Geom::fuzz {

namespace {

using test::Doubles;
using test::Ints;
using test::Longs;

constexpr std::array<const char *, 20> labels{"Zone_t",
                                              "ZoneType_t",
                                              "GridCoordinates_t",
                                              "DataArray_t",
                                              "Elements_t",
                                              "IndexRange_t",
                                              "IndexArray_t",
                                              "ZoneBC_t",
                                              "BC_t",
                                              "GridLocation_t",
                                              "FamilyName_t",
                                              "Family_t",
                                              "FamilyBC_t",
                                              "ZoneGridConnectivity_t",
                                              "GridConnectivity_t",
                                              "GridConnectivity1to1_t",
                                              "GridConnectivityType_t",
                                              "GridConnectivityProperty_t",
                                              "Periodic_t",
                                              "Rind_t"};
constexpr std::array<const char *, 18> names{
    "ElementRange", "ElementConnectivity", "ElementStartOffset", "ParentElements", "ParentElementsPosition",
    "PointRange",   "PointList",           "PointListDonor",     "ElementList",    "GridCoordinates",
    "CoordinateX",  "CoordinateZ",         "GridLocation",       "ZoneBC",         "Transform",
    "Rind",         "Translation",         "PointRangeDonor"};
constexpr std::array<const char *, 14> texts{"Unstructured",
                                             "Structured",
                                             "Vertex",
                                             "FaceCenter",
                                             "CellCenter",
                                             "EdgeCenter",
                                             "BCWall",
                                             "FamilySpecified",
                                             "Abutting1to1",
                                             "Overset",
                                             "Null",
                                             "",
                                             "a name that is much longer than the 32 characters of a node",
                                             "Base/Zone"};

int cgnsInt(std::size_t value) { return static_cast<int>(value); }

CgnsNode section(const std::string &name, int type, index first, index last, Ints connectivity, Ints offsets = {}) {
    CgnsNode node{name, "Elements_t", Ints{type, 0}};
    node.children.push_back({"ElementRange", "IndexRange_t", Ints{static_cast<int>(first), static_cast<int>(last)}});
    node.children.push_back({"ElementConnectivity", "DataArray_t", std::move(connectivity)});
    if (!offsets.empty())
        node.children.push_back({"ElementStartOffset", "DataArray_t", std::move(offsets)});
    return node;
}

/// NGON_n and NFACE_n sections of cells that list their faces.
void addPolyhedra(CgnsNode &zone, const ElementBlock &cells) {
    std::map<std::vector<index>, int> known;
    Ints corners;
    Ints cornerStarts{0};
    Ints faces;
    Ints faceStarts{0};
    for (index c = 0; c < cells.size(); c++) {
        const auto list = cells.nodesOf(c);
        for (std::size_t at = 0; at < list.size(); at += static_cast<std::size_t>(list[at]) + 1) {
            const auto face = list.subspan(at + 1, static_cast<std::size_t>(list[at]));
            std::vector<index> key(face.begin(), face.end());
            std::sort(key.begin(), key.end());
            const auto [entry, isNew] = known.emplace(key, cgnsInt(known.size()) + 1);
            if (isNew) {
                for (const index node : face)
                    corners.push_back(static_cast<int>(node) + 1);
                cornerStarts.push_back(cgnsInt(corners.size()));
            }
            faces.push_back(isNew ? entry->second : -entry->second);
        }
        faceStarts.push_back(cgnsInt(faces.size()));
    }
    const auto count = static_cast<index>(known.size());
    zone.children.push_back(section("Faces", 22, 1, count, std::move(corners), std::move(cornerStarts)));
    zone.children.push_back(
        section("Cells", 23, count + 1, count + cells.size(), std::move(faces), std::move(faceStarts)));
}

/// The elements as a MIXED section.
CgnsNode mixedSection(const std::string &name, const ElementBlock &block, index first, bool offsets) {
    Ints stream;
    Ints starts{0};
    for (index e = 0; e < block.size(); e++) {
        stream.push_back(static_cast<int>(block.types[static_cast<std::size_t>(e)]));
        for (const index node : block.nodesOf(e))
            stream.push_back(static_cast<int>(node) + 1);
        starts.push_back(cgnsInt(stream.size()));
    }
    return section(name, 20, first, first + block.size() - 1, std::move(stream), offsets ? starts : Ints{});
}

/// Conditions of the faces, which are elements from `first` on.
CgnsNode conditions(const SourceMesh &mesh, index first) {
    CgnsNode group{"ZoneBC", "ZoneBC_t"};
    for (std::size_t p = 0; p < mesh.patches.size(); p++) {
        Ints points;
        for (std::size_t f = 0; f < mesh.faceMarks.size(); f++)
            if (mesh.faceMarks[f] == static_cast<int>(p))
                points.push_back(static_cast<int>(first) + cgnsInt(f));
        const bool range =
            p % 2 == 0 && !points.empty() && points.back() - points.front() + 1 == cgnsInt(points.size());
        const Ints ends = range ? Ints{points.front(), points.back()} : points;
        CgnsNode condition{mesh.patches[p].name, "BC_t", std::string(p % 3 == 0 ? "FamilySpecified" : "BCWall")};
        condition.children.push_back({range ? "PointRange" : "PointList", range ? "IndexRange_t" : "IndexArray_t", ends,
                                      std::vector<int>{1, cgnsInt(ends.size())}});
        condition.children.push_back({"GridLocation", "GridLocation_t", std::string("FaceCenter")});
        if (p % 3 == 0)
            condition.children.push_back({"FamilyName", "FamilyName_t", std::string("Wall")});
        group.children.push_back(std::move(condition));
    }
    return group;
}

void addConnections(CgnsNode &zone, const SourceMesh &mesh, index first) {
    CgnsNode group{"ZoneGridConnectivity", "ZoneGridConnectivity_t"};
    for (std::size_t c = 0; c < mesh.periodic.size(); c++) {
        std::array<Ints, 2> sides;
        for (std::size_t f = 0; f < mesh.faceMarks.size(); f++)
            for (std::size_t s = 0; s < 2; s++)
                if (mesh.faceMarks[f] == -1 - cgnsInt(2 * c + s))
                    sides[s].push_back(static_cast<int>(first) + cgnsInt(f));
        CgnsNode connection{mesh.periodic[c].name, "GridConnectivity_t", std::string("Zone")};
        connection.children.push_back({"GridConnectivityType", "GridConnectivityType_t", std::string("Abutting1to1")});
        connection.children.push_back({"GridLocation", "GridLocation_t", std::string("FaceCenter")});
        connection.children.push_back({"PointList", "IndexArray_t", sides[0], {1, cgnsInt(sides[0].size())}});
        connection.children.push_back({"PointListDonor", "IndexArray_t", sides[1], {1, cgnsInt(sides[1].size())}});
        test::Floats translation;
        for (const real x : mesh.periodic[c].transform.translation)
            translation.push_back(static_cast<float>(x));
        CgnsNode periodic{"Periodic", "Periodic_t"};
        periodic.children.push_back({"RotationCenter", "DataArray_t", test::Floats{0, 0, 0}});
        periodic.children.push_back({"RotationAngle", "DataArray_t", test::Floats{0, 0, 0}});
        periodic.children.push_back({"Translation", "DataArray_t", translation});
        CgnsNode property{"GridConnectivityProperty", "GridConnectivityProperty_t"};
        property.children.push_back(std::move(periodic));
        connection.children.push_back(std::move(property));
        group.children.push_back(std::move(connection));
    }
    if (!group.children.empty())
        zone.children.push_back(std::move(group));
}

std::vector<CgnsNode *> allNodes(CgnsNode &root) {
    std::vector<CgnsNode *> nodes{&root};
    for (std::size_t at = 0; at < nodes.size(); at++)
        for (CgnsNode &child : nodes[at]->children)
            nodes.push_back(&child);
    return nodes;
}

template <class T>
T oddNumber(Random &random, T old) {
    if constexpr (std::is_floating_point_v<T>) {
        const std::array<T, 6> odd{0,
                                   -1,
                                   std::numeric_limits<T>::infinity(),
                                   std::numeric_limits<T>::quiet_NaN(),
                                   std::numeric_limits<T>::max(),
                                   static_cast<T>(1e-30)};
        return random.oneOf(odd);
    } else {
        const auto wide = static_cast<std::uint64_t>(old); // overflows as it likes
        const std::array<T, 11> odd{0,
                                    1,
                                    -1,
                                    2,
                                    10,
                                    22,
                                    23,
                                    std::numeric_limits<T>::max(),
                                    std::numeric_limits<T>::min(),
                                    static_cast<T>(wide + 1),
                                    static_cast<T>(0 - wide)};
        return random.oneOf(odd);
    }
}

void changeValues(test::Data &data, Random &random) {
    std::visit(
        [&](auto &values) {
            using Values = std::decay_t<decltype(values)>;
            if constexpr (std::is_same_v<Values, std::string>) {
                values = random.oneOf(texts);
            } else if constexpr (!std::is_same_v<Values, std::monostate>) {
                if (values.empty())
                    return;
                auto &value = values[random.below(values.size())];
                switch (random.below(6)) {
                case 0:
                    values.resize(random.below(values.size()) + 1);
                    break;
                case 1:
                    values.push_back(value);
                    break;
                default:
                    value = oddNumber(random, value);
                }
            }
        },
        data);
}

void changeType(test::Data &data, Random &random) {
    const std::size_t to = random.below(6);
    std::visit(
        [&](auto &values) {
            using Values = std::decay_t<decltype(values)>;
            if constexpr (std::is_same_v<Values, std::monostate> || std::is_same_v<Values, std::string>) {
                data = Ints{1, 2};
            } else {
                const Values old = values;
                if (to == 0)
                    data = Longs(old.begin(), old.end());
                else if (to == 1)
                    data = Doubles(old.begin(), old.end());
                else if (to == 2)
                    data = std::string("text");
                else if (to == 3)
                    data = std::monostate{};
                else if (std::is_integral_v<typename Values::value_type>)
                    data = Longs(old.begin(), old.end());
            }
        },
        data);
}

void change(CgnsNode &root, Random &random) {
    const std::vector<CgnsNode *> nodes = allNodes(root);
    CgnsNode &node = *random.oneOf(nodes);
    CgnsNode &other = *random.oneOf(nodes);
    switch (random.below(10)) {
    case 0:
        node.name = random.oneOf(names);
        break;
    case 1:
        node.label = random.oneOf(labels);
        break;
    case 2:
        if (!node.children.empty())
            node.children.erase(node.children.begin() +
                                static_cast<std::ptrdiff_t>(random.below(node.children.size())));
        break;
    case 3: {
        CgnsNode copy = other;
        copy.name += "2";
        if (nodes.size() < 200)
            node.children.push_back(std::move(copy));
        break;
    }
    case 4:
        node.data = test::Data(other.data);
        node.dimensions = std::vector<int>(other.dimensions);
        break;
    case 5:
        changeType(node.data, random);
        node.dimensions.clear();
        break;
    default:
        changeValues(node.data, random);
        node.dimensions.clear();
    }
}

void write(test::CgnsFile &file, double parent, const CgnsNode &node) {
    const double id = file.add(parent, node.name, node.label, node.data, node.dimensions);
    for (const CgnsNode &child : node.children)
        write(file, id, child);
}

} // namespace

CgnsNode cgnsTree(const SourceMesh &mesh) {
    CgnsNode base{"Base", "CGNSBase_t", Ints{mesh.cellDimension, mesh.physicalDimension}};
    base.children.push_back({"Wall", "Family_t"});
    base.children.back().children.push_back({"FamBC", "FamilyBC_t", std::string("BCWall")});
    CgnsNode zone{
        "Zone", "Zone_t", Ints{static_cast<int>(mesh.globalNodes), static_cast<int>(mesh.cells.globalSize), 0}, {1, 3}};
    zone.children.push_back({"ZoneType", "ZoneType_t", std::string("Unstructured")});
    CgnsNode grid{"GridCoordinates", "GridCoordinates_t"};
    for (std::size_t d = 0; d < static_cast<std::size_t>(mesh.physicalDimension); d++) {
        Doubles values;
        for (const auto &point : mesh.coordinates)
            values.push_back(point[d]);
        grid.children.push_back(
            {std::string("Coordinate") + static_cast<char>('X' + static_cast<char>(d)), "DataArray_t", values});
    }
    zone.children.push_back(std::move(grid));
    index first = mesh.cells.globalSize + 1;
    if (!mesh.cells.types.empty() && mesh.cells.types[0] == ElementType::Polyhedron) {
        addPolyhedra(zone, mesh.cells);
    } else {
        zone.children.push_back(mixedSection("Cells", mesh.cells, 1, mesh.cells.size() % 2 == 0));
        if (mesh.faces.size() > 0)
            zone.children.push_back(mixedSection("Boundary", mesh.faces, first, true));
        zone.children.push_back(conditions(mesh, first));
        addConnections(zone, mesh, first);
    }
    base.children.push_back(std::move(zone));
    return base;
}

void mutate(CgnsNode &root, Random &random) {
    for (std::size_t changes = random.below(3) + 1; changes > 0; changes--)
        change(root, random);
}

std::string cgnsBytes(const CgnsNode &base, test::FileType type) {
    const auto path = (std::filesystem::temp_directory_path() / ("dnds_tree_" + std::to_string(::getpid()))).string();
    std::filesystem::remove(path);
    {
        test::CgnsFile file(path, type, 3.2F);
        write(file, file.root(), base);
    }
    std::ostringstream content;
    content << std::ifstream(path, std::ios::binary).rdbuf();
    std::filesystem::remove(path);
    return content.str();
}

} // namespace DNDS::Geom::fuzz
