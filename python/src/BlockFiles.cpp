#include "Arguments.hpp"
#include "BlockHandles.hpp"
#include "Errors.hpp"
#include "NumpyViews.hpp"

#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

namespace DNDS::Python {

namespace nb = nanobind;
using namespace nb::literals;

namespace {

nb::object pythonOf(const NetcdfValue &value) {
    return std::visit(
        [](const auto &held) -> nb::object {
            if constexpr (std::is_same_v<std::decay_t<decltype(held)>, std::string>)
                return nb::bytes(held.data(), held.size()).attr("decode")("utf-8", "replace");
            else if (held.size() == 1)
                return nb::cast(held.front());
            else
                return nb::cast(held);
        },
        value);
}

nb::dict attributesOf(const std::vector<NetcdfAttribute> &attributes) {
    nb::dict result;
    for (const NetcdfAttribute &attribute : attributes)
        result[attribute.name.c_str()] = pythonOf(attribute.value);
    return result;
}

/// Text, an integer or a number, of the narrowest type that classic files have.
NetcdfAttribute attributeOf(const std::string &name, nb::handle value) {
    std::string text;
    if (nb::try_cast(value, text))
        return {name, text};
    std::int64_t integer = 0;
    if (nb::try_cast(value, integer, false)) {
        const bool narrow = integer == static_cast<std::int32_t>(integer);
        return {name, narrow ? ElementKind::Int32 : ElementKind::Int64, std::vector<std::int64_t>{integer}};
    }
    real number = 0;
    DNDS_CHECK(nb::try_cast(value, number), ArgumentError, "the attribute '{}' is no text and no number", name);
    return {name, number};
}

/// The coordinates of a dimension, where the file has them: numbers, one an entry.
bool hasCoordinate(const NetcdfContent &content, const NetcdfDimension &dimension) {
    return std::ranges::any_of(content.variables, [&](const NetcdfVariable &variable) {
        return variable.name == dimension.name && variable.dimensions.size() == 1 &&
               variable.dimensions.front().name == dimension.name && variable.kind != ElementKind::Opaque;
    });
}

std::vector<DimensionPick> picksOf(const std::map<std::string, index> &places,
                                   const std::map<std::string, real> &values) {
    std::vector<DimensionPick> picks;
    for (const auto &[name, at] : places)
        picks.push_back(atIndex(name, at));
    for (const auto &[name, value] : values)
        picks.push_back(atValue(name, value));
    return picks;
}

/// Of a dict or None. Throws ArgumentError.
template <class Value>
std::map<std::string, Value> mapOf(nb::handle given, const char *what) {
    std::map<std::string, Value> result;
    DNDS_CHECK(given.is_none() || nb::try_cast(given, result), ArgumentError,
               "{} is a dict from names of dimensions to numbers", what);
    return result;
}

nb::dict netcdfVariables(nb::handle path, nb::handle comm) {
    const CommPtr shared = commOf(comm);
    std::string name;
    guarded(shared->view, [&] { name = pathOf(path); });
    const auto file = [&] {
        const nb::gil_scoped_release others;
        return std::make_unique<NetcdfReader>(shared->view, name);
    }();
    nb::dict result;
    for (const NetcdfVariable &variable : file->content().variables) {
        nb::list dims;
        for (const NetcdfDimension &dimension : variable.dimensions)
            dims.append(dimension.name);
        nb::dict entry;
        entry["dims"] = nb::tuple(dims);
        entry["shape"] = nb::tuple(nb::cast(variable.shape()));
        entry["dtype"] = variable.type;
        entry["attrs"] = attributesOf(variable.attributes);
        result[variable.name.c_str()] = entry;
    }
    return result;
}

/// Names of a variable in the file: its remaining dimensions, their coordinates, attributes.
nb::tuple readField(BlockFieldHandle &self, nb::handle path, const std::string &variable, index step, nb::handle places,
                    nb::handle values) {
    const CommunicatorView comm = self.grid.comm->view;
    std::string name;
    NetcdfReadOptions options;
    guarded(comm, [&] {
        self.requireLanded("be read");
        name = pathOf(path);
        options.picks = picksOf(mapOf<index>(places, "isel"), mapOf<real>(values, "sel"));
    });
    std::vector<std::string> dims;
    std::map<std::string, std::vector<real>> coordinates;
    NetcdfVariable about;
    {
        const nb::gil_scoped_release others;
        const NetcdfReader file(comm, name);
        comm.guarded([&] {
            about = file.variable(variable);
            if (options.picks.empty())
                options.picks = picksFor(about, self.field->shapeInFile(), step);
        });
        self.field->read(file, variable, options);
        for (const NetcdfDimension &dimension : about.dimensions) {
            if (std::ranges::any_of(options.picks,
                                    [&](const DimensionPick &pick) { return pick.dimension == dimension.name; }))
                continue;
            dims.push_back(dimension.name);
            if (hasCoordinate(file.content(), dimension))
                coordinates[dimension.name] = file.values(dimension.name);
        }
    }
    nb::dict arrays;
    for (auto &[dimension, list] : coordinates) {
        const auto held = std::make_shared<std::vector<real>>(std::move(list));
        arrays[dimension.c_str()] = numpyOf(std::span<const real>(*held), held);
    }
    return nb::make_tuple(nb::tuple(nb::cast(dims)), arrays, attributesOf(about.attributes));
}

/// Whether rank 0 sees a file there. Collective.
bool existsThere(const CommunicatorView &comm, const std::string &path) {
    std::error_code ignored;
    int exists = comm.rank() == 0 && std::filesystem::exists(path, ignored) ? 1 : 0;
    comm.broadcast(exists);
    return exists != 0;
}

/// Adds a step after the last one of the file, at `time`. Collective.
void appendStep(const CommunicatorView &comm, AnyBlockField &field, NetcdfWriter &file, const std::string &variable,
                const real &time) {
    file.define();
    const index step = file.length("time");
    std::vector<WrittenSlab> mine;
    if (comm.rank() == 0)
        mine.push_back(slabOf(&time, {step}, {1}));
    file.write("time", mine);
    field.write(file, variable, {step});
}

/// With `time`, adds a step to the file, which is made if it does not exist.
void writeField(BlockFieldHandle &self, nb::handle path, const std::string &variable,
                const std::vector<std::string> &dims, nb::handle coordinates, const nb::dict &attributes,
                std::optional<real> time, const std::string &timeUnits) {
    const CommunicatorView comm = self.grid.comm->view;
    std::string name;
    std::vector<NetcdfAttribute> declared;
    std::map<std::string, std::vector<real>> lists;
    guarded(comm, [&] {
        self.requireLanded("be written");
        name = pathOf(path);
        for (const auto &[key, value] : attributes)
            declared.push_back(attributeOf(nb::cast<std::string>(key), value));
        DNDS_CHECK(nb::try_cast(coordinates, lists), ArgumentError,
                   "coords is a dict from names of dimensions to lists of numbers");
        const std::vector<index> shape = self.field->shapeInFile();
        for (std::size_t d = 0; d < dims.size(); ++d)
            DNDS_CHECK(!lists.contains(dims[d]) || static_cast<index>(lists[dims[d]].size()) == shape.at(d),
                       ArgumentError, "'{}' has {} coordinates for {} cells", dims[d], lists[dims[d]].size(), shape[d]);
    });
    const nb::gil_scoped_release others;
    const bool adds = time && existsThere(comm, name);
    NetcdfWriter file(comm, name, {.append = adds});
    comm.guarded([&] {
        if (adds)
            return;
        const std::vector<index> shape = self.field->shapeInFile();
        for (std::size_t d = 0; d < dims.size(); ++d)
            if (const auto list = lists.find(dims[d]); list != lists.end())
                file.coordinate(dims[d], list->second);
            else
                file.dimension(dims[d], shape.at(d));
        std::vector<std::string> all = dims;
        if (time) {
            file.unlimited("time");
            file.variable("time", ElementKind::Float64, {"time"}, {{"units", timeUnits}});
            all.insert(all.begin(), "time");
        }
        file.variable(variable, self.field->array().shape().kind, all, declared);
    });
    if (time)
        appendStep(comm, *self.field, file, variable, *time);
    else
        self.field->write(file, variable, {});
    file.close();
}

} // namespace

void bindBlockFiles(nb::module_ &module) {
    module.def("netcdf_variables", &netcdfVariables, "path"_a, "comm"_a.none() = nb::none(),
               nb::sig("def netcdf_variables(path: str | os.PathLike, comm: mpi4py.MPI.Comm | None = None) -> "
                       "dict[str, dict[str, object]]"),
               "What a NetCDF file has: for each variable dims, shape, dtype and attrs. Collective.");
    nb::borrow<nb::class_<BlockFieldHandle>>(module.attr("BlockField"))
        .def("_read_netcdf", &readField, "path"_a, "variable"_a, "step"_a, "isel"_a.none(), "sel"_a.none())
        .def("_write_netcdf", &writeField, "path"_a, "variable"_a, "dims"_a, "coords"_a, "attrs"_a, "time"_a.none(),
             "time_units"_a);
}

} // namespace DNDS::Python
