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

/// Text, an integer or a number, or a list of these numbers; integers as int32 where they fit.
NetcdfAttribute attributeOf(const std::string &name, nb::handle value) {
    std::string text;
    if (nb::try_cast(value, text))
        return {name, text};
    const nb::object list = isList(value) ? nb::borrow(value) : nb::object(nb::make_tuple(value));
    if (std::vector<std::int64_t> integers; isIntegers(list) && nb::try_cast(list, integers)) {
        const bool narrow =
            std::ranges::all_of(integers, [](std::int64_t each) { return each == static_cast<std::int32_t>(each); });
        return {name, narrow ? ElementKind::Int32 : ElementKind::Int64, std::move(integers)};
    }
    std::vector<real> numbers;
    DNDS_CHECK(nb::try_cast(list, numbers), ArgumentError,
               "the attribute '{}' is no text, no number and no list of numbers", name);
    return {name, ElementKind::Float64, std::move(numbers)};
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

/// A coordinate of a file: its numbers, its attributes, and the nodes between cells where its `bounds` leave no gaps.
struct Coordinate {
    std::vector<real> values;
    std::vector<NetcdfAttribute> attributes;
    std::vector<real> nodes;
};

/// Collective.
Coordinate coordinateOf(const NetcdfReader &file, const std::string &name) {
    Coordinate read{file.values(name), file.variable(name).attributes, {}};
    const std::string bounds = file.variable(name).text("bounds");
    std::erase_if(read.attributes, [](const NetcdfAttribute &attribute) { return attribute.name == "bounds"; });
    const auto cells = static_cast<index>(read.values.size());
    if (cells == 0 || !file.content().has(bounds) || file.variable(bounds).shape() != std::vector<index>{cells, 2})
        return read;
    std::vector<real> ends(2 * toSize(cells)); // [cells x 2]
    file.read(bounds, slabOf(ends.data(), {0, 0}, {cells, 2}));
    // Files name the lesser end of a cell first where coordinates descend, too: then the second one is the upper node.
    const bool turned = cells > 1 && ends[0] == ends[3];
    std::vector<real> nodes{ends[turned ? 1 : 0]};
    for (std::size_t k = 0; k < ends.size(); k += 2) {
        const auto [first, second] = turned ? std::pair(ends[k + 1], ends[k]) : std::pair(ends[k], ends[k + 1]);
        if (first != nodes.back())
            return read; // a gap
        nodes.push_back(second);
    }
    read.nodes = std::move(nodes);
    return read;
}

nb::object arrayOf(std::vector<real> list) {
    const auto held = std::make_shared<std::vector<real>>(std::move(list));
    return numpyOf(std::span<const real>(*held), held);
}

/// Names of a variable in the file: its remaining dimensions, their coordinates, their attributes, nodes where the file
/// has bounds, and attributes.
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
    std::map<std::string, Coordinate> coordinates;
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
                coordinates[dimension.name] = coordinateOf(file, dimension.name);
        }
    }
    nb::dict arrays;
    nb::dict attributes;
    nb::dict bounds;
    for (auto &[dimension, coordinate] : coordinates) {
        arrays[dimension.c_str()] = arrayOf(std::move(coordinate.values));
        attributes[dimension.c_str()] = attributesOf(coordinate.attributes);
        if (!coordinate.nodes.empty())
            bounds[dimension.c_str()] = arrayOf(std::move(coordinate.nodes));
    }
    return nb::make_tuple(nb::tuple(nb::cast(dims)), arrays, attributes, bounds, attributesOf(about.attributes));
}

/// Whether rank 0 sees a file there. Collective.
bool existsThere(const CommunicatorView &comm, const std::string &path) {
    std::error_code ignored;
    int exists = comm.rank() == 0 && std::filesystem::exists(path, ignored) ? 1 : 0;
    comm.broadcast(exists);
    return exists != 0;
}

std::vector<NetcdfAttribute> declaredAttributes(nb::handle given) {
    std::vector<NetcdfAttribute> declared;
    for (const auto &[key, value] : nb::cast<nb::dict>(given))
        declared.push_back(attributeOf(nb::cast<std::string>(key), value));
    return declared;
}

using Numbers = std::map<std::string, std::vector<real>>;

/// Numbers a dimension. Throws ArgumentError.
Numbers numbersOf(nb::handle given, const char *what) {
    Numbers numbers;
    DNDS_CHECK(nb::try_cast(given, numbers), ArgumentError, "{} is a dict from names of dimensions to lists of numbers",
               what);
    return numbers;
}

/// Whether two arrays that both have numbers of a dimension have the same.
bool sameNumbers(const Numbers &a, const Numbers &b, const std::string &dimension) {
    const auto one = a.find(dimension);
    const auto other = b.find(dimension);
    return one == a.end() || other == b.end() || one->second == other->second;
}

/// A variable to be written: an NdArray.
struct WrittenArray {
    BlockFieldHandle *field = nullptr;
    std::string variable;
    std::vector<std::string> dims;
    Numbers coordinates;
    Numbers bounds;
    std::map<std::string, std::vector<NetcdfAttribute>> axisAttributes;
    std::vector<NetcdfAttribute> attributes;

    WrittenArray(const std::string &name, nb::handle array)
        : field(blockFieldOf(array)), variable(name), coordinates(numbersOf(array.attr("coords"), "coords")),
          bounds(numbersOf(array.attr("bounds"), "bounds")), attributes(declaredAttributes(array.attr("attrs"))) {
        DNDS_CHECK(field != nullptr, ArgumentError, "'{}' is no NdArray", name);
        field->requireLanded("be written");
        dims = nb::cast<std::vector<std::string>>(nb::list(array.attr("dims")));
        for (const auto &[dimension, its] : nb::cast<nb::dict>(array.attr("coord_attrs")))
            axisAttributes[nb::cast<std::string>(dimension)] = declaredAttributes(its);
        const std::vector<index> shape = field->field->shapeInFile();
        for (std::size_t d = 0; d < dims.size(); ++d) {
            const Numbers::const_iterator list = coordinates.find(dims[d]);
            DNDS_CHECK(list == coordinates.end() || static_cast<index>(list->second.size()) == shape.at(d),
                       ArgumentError, "'{}' has {} coordinates for {} points", dims[d], list->second.size(), shape[d]);
            DNDS_CHECK(
                !bounds.contains(dims[d]) || static_cast<index>(bounds[dims[d]].size()) == shape[d] + 1, ArgumentError,
                "'{}' has {} bounds for {} points: cells have one more bound, the nodes; a dimension of nodes has "
                "coords instead",
                dims[d], bounds[dims[d]].size(), shape[d]);
        }
    }

    /// Declares it, with the coordinates that no variable before it has; `known` are these, by dimension. Local. Throws
    /// ArgumentError for other coordinates of the same dimension.
    void declare(NetcdfWriter &file, std::map<std::string, const WrittenArray *> &known, bool steps) const {
        const std::vector<index> shape = field->field->shapeInFile();
        for (std::size_t d = 0; d < dims.size(); ++d) {
            const std::string &name = dims[d];
            const auto list = coordinates.find(name);
            const auto nodes = bounds.find(name);
            const auto its = axisAttributes.find(name);
            const auto axis = its == axisAttributes.end() ? std::vector<NetcdfAttribute>{} : its->second;
            file.dimension(name, shape.at(d));
            if (list == coordinates.end() && nodes == bounds.end())
                continue;
            if (const auto [first, isNew] = known.try_emplace(name, this); !isNew) {
                DNDS_CHECK(sameNumbers(coordinates, first->second->coordinates, name) &&
                               sameNumbers(bounds, first->second->bounds, name),
                           ArgumentError,
                           "'{}' and '{}' have other coordinates or bounds in dimension '{}': give it two names",
                           first->second->variable, variable, name);
                continue;
            }
            const std::vector<real> values = list == coordinates.end() ? std::vector<real>{} : list->second;
            if (nodes != bounds.end())
                file.axis({name, nodes->second, axis, values});
            else
                file.coordinate(name, values, axis);
        }
        std::vector<std::string> all = dims;
        if (steps)
            all.insert(all.begin(), "time");
        file.variable(variable, field->field->array().shape().kind, all, attributes);
    }
};

/// With `time`, adds a step to the file, which is made if it does not exist.
void writeArrays(nb::handle path, const nb::dict &arrays, std::optional<real> time, const std::string &timeUnits,
                 nb::handle given) {
    const CommunicatorView comm = commOf(given)->view;
    std::string name;
    std::vector<WrittenArray> written;
    guarded(comm, [&] {
        name = pathOf(path);
        for (const auto &[variable, array] : arrays)
            written.emplace_back(nb::cast<std::string>(variable), array);
    });
    const nb::gil_scoped_release others;
    const bool adds = time && existsThere(comm, name);
    NetcdfWriter file(comm, name, {.append = adds});
    comm.guarded([&] {
        if (adds)
            return;
        if (time) {
            file.unlimited("time");
            file.variable("time", ElementKind::Float64, {"time"}, {{"units", timeUnits}});
        }
        std::map<std::string, const WrittenArray *> known;
        for (const WrittenArray &array : written)
            array.declare(file, known, time.has_value());
        if (time || !known.empty())
            file.attribute({"Conventions", "CF-1.8"});
    });
    std::vector<index> leading;
    if (time) {
        file.define();
        leading = {file.length("time")};
        std::vector<WrittenSlab> mine;
        if (comm.rank() == 0)
            mine.push_back(slabOf(&*time, leading, {1}));
        file.write("time", mine);
    }
    for (const WrittenArray &array : written)
        array.field->field->write(file, array.variable, leading);
    file.close();
}

} // namespace

void bindBlockFiles(nb::module_ &module) {
    module.def("netcdf_variables", &netcdfVariables, "path"_a.none(), "comm"_a.none() = nb::none(),
               nb::sig("def netcdf_variables(path: str | os.PathLike, comm: mpi4py.MPI.Comm | None = None) -> "
                       "dict[str, dict[str, object]]"),
               "What a NetCDF file has: for each variable dims, shape, dtype and attrs. Collective.");
    nb::borrow<nb::class_<BlockFieldHandle>>(module.attr("BlockField"))
        .def("_read_netcdf", &readField, "path"_a.none(), "variable"_a, "step"_a, "isel"_a.none(), "sel"_a.none());
    module.def("_write_netcdf", &writeArrays, "path"_a.none(), "arrays"_a, "time"_a.none(), "time_units"_a,
               "comm"_a.none());
}

} // namespace DNDS::Python
