#include "Geom/Cgns/CgnsFile.hpp"

#include <cgns_io.h>

#include <stdexcept>

namespace DNDS::Geom::test {

namespace {

void check(int status) {
    if (status == CGIO_ERR_NONE)
        return;
    std::array<char, 256> text{};
    cgio_error_message(text.data());
    throw std::runtime_error(text.data());
}

struct Description {
    const char *type;
    const void *data;
    std::size_t size;
};

Description describe(const Data &data) {
    return std::visit(
        [](const auto &values) -> Description {
            using Values = std::decay_t<decltype(values)>;
            if constexpr (std::is_same_v<Values, std::monostate>)
                return {"MT", nullptr, 0};
            else
                return {std::is_same_v<Values, std::string> ? "C1"
                        : std::is_same_v<Values, Ints>      ? "I4"
                        : std::is_same_v<Values, Longs>     ? "I8"
                        : std::is_same_v<Values, Floats>    ? "R4"
                                                            : "R8",
                        values.data(), values.size()};
        },
        data);
}

/// The library copies 33 bytes of names and labels, however short they are.
std::string padded(std::string text) {
    text.resize(CGIO_MAX_NAME_LENGTH + 1, '\0');
    return text;
}

bool isEmpty(const Data &data) { return std::holds_alternative<std::monostate>(data); }

} // namespace

CgnsFile::CgnsFile(const std::string &path, FileType type, float version) {
    check(
        cgio_open_file(path.c_str(), CGIO_MODE_WRITE, type == FileType::Adf ? CGIO_FILE_ADF : CGIO_FILE_HDF5, &file_));
    check(cgio_get_root_id(file_, &root_));
    if (version > 0.0F)
        add(root_, "CGNSLibraryVersion", "CGNSLibraryVersion_t", Floats{version});
}

CgnsFile::~CgnsFile() { cgio_close_file(file_); }

double CgnsFile::add(double parent, const std::string &name, const std::string &label, const Data &data,
                     const std::vector<int> &dimensions) {
    const Description described = describe(data);
    std::vector<cgsize_t> extents(dimensions.begin(), dimensions.end());
    if (extents.empty() && described.data != nullptr)
        extents.push_back(static_cast<cgsize_t>(described.size));
    double id = 0.0;
    check(cgio_create_node(file_, parent, padded(name).c_str(), &id));
    check(cgio_set_label(file_, id, padded(label).c_str()));
    if (described.data != nullptr) {
        check(cgio_set_dimensions(file_, id, described.type, static_cast<int>(extents.size()), extents.data()));
        check(cgio_write_all_data(file_, id, described.data));
    }
    return id;
}

void CgnsFile::link(double parent, const std::string &name, const std::string &file, const std::string &path) {
    double id = 0.0;
    check(cgio_create_link(file_, parent, padded(name).c_str(), file.c_str(), path.c_str(), &id));
}

double CgnsFile::base(const std::string &name, int cellDimension, int physicalDimension) {
    return add(root_, name, "CGNSBase_t", Ints{cellDimension, physicalDimension});
}

double CgnsFile::zone(double base, const std::string &name, std::int64_t nodes, std::int64_t cells) {
    const double id = add(base, name, "Zone_t", Longs{nodes, cells, 0}, {1, 3});
    add(id, "ZoneType", "ZoneType_t", std::string("Unstructured"));
    return id;
}

double CgnsFile::structuredZone(double base, const std::string &name, const Ints &extent) {
    Ints size = extent;
    for (const int n : extent)
        size.push_back(n - 1);
    size.resize(3 * extent.size(), 0);
    const double id = add(base, name, "Zone_t", size, {static_cast<int>(extent.size()), 3});
    add(id, "ZoneType", "ZoneType_t", std::string("Structured"));
    return id;
}

void CgnsFile::coordinates(double zone, const std::vector<std::array<double, 3>> &points, int dimensions) {
    const double grid = add(zone, "GridCoordinates", "GridCoordinates_t");
    const std::array<const char *, 3> names{"CoordinateX", "CoordinateY", "CoordinateZ"};
    for (std::size_t k = 0; k < static_cast<std::size_t>(dimensions); k++) {
        Doubles values;
        for (const auto &point : points)
            values.push_back(point[k]);
        add(grid, names[k], "DataArray_t", values);
    }
}

double CgnsFile::section(double zone, const std::string &name, int type, std::int64_t first, std::int64_t last,
                         const Data &connectivity, const Data &offsets) {
    const double id = add(zone, name, "Elements_t", Ints{type, 0});
    add(id, "ElementRange", "IndexRange_t", Longs{first, last});
    add(id, "ElementConnectivity", "DataArray_t", connectivity);
    if (!isEmpty(offsets))
        add(id, "ElementStartOffset", "DataArray_t", offsets);
    return id;
}

/// The child that holds others, made when it is first asked for.
double CgnsFile::group(double zone, const std::string &name, const std::string &label) {
    double id = 0.0;
    if (cgio_get_node_id(file_, zone, name.c_str(), &id) == CGIO_ERR_NONE)
        return id;
    return add(zone, name, label);
}

double CgnsFile::condition(double zone, const std::string &name, const std::string &kind, const std::string &set,
                           const Data &points, const std::string &location, const std::string &family) {
    const double id = add(group(zone, "ZoneBC", "ZoneBC_t"), name, "BC_t", kind);
    const bool range = set.find("Range") != std::string::npos;
    if (!isEmpty(points)) {
        const int size = static_cast<int>(describe(points).size);
        add(id, set, range ? "IndexRange_t" : "IndexArray_t", points,
            range ? std::vector<int>{size / 2, 2} : std::vector<int>{1, size});
    }
    if (!location.empty())
        add(id, "GridLocation", "GridLocation_t", location);
    if (!family.empty())
        add(id, "FamilyName", "FamilyName_t", family);
    return id;
}

double CgnsFile::connection(double zone, const std::string &name, const std::string &donor, const Data &points,
                            const Data &donorPoints, const std::string &location) {
    const double id =
        add(group(zone, "ZoneGridConnectivity", "ZoneGridConnectivity_t"), name, "GridConnectivity_t", donor);
    add(id, "GridConnectivityType", "GridConnectivityType_t", std::string("Abutting1to1"));
    add(id, "PointList", "IndexArray_t", points, {1, static_cast<int>(describe(points).size)});
    add(id, "PointListDonor", "IndexArray_t", donorPoints, {1, static_cast<int>(describe(donorPoints).size)});
    if (!location.empty())
        add(id, "GridLocation", "GridLocation_t", location);
    return id;
}

double CgnsFile::periodic(double connection, const Floats &centre, const Floats &angle, const Floats &translation) {
    const double property = add(connection, "GridConnectivityProperty", "GridConnectivityProperty_t");
    const double id = add(property, "Periodic", "Periodic_t");
    add(id, "RotationCenter", "DataArray_t", centre);
    add(id, "RotationAngle", "DataArray_t", angle);
    add(id, "Translation", "DataArray_t", translation);
    return id;
}

} // namespace DNDS::Geom::test
