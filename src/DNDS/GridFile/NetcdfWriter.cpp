#include "DNDS/GridFile/NetcdfWriterFile.hpp"

#include "DNDS/Mpi/FailTogether.hpp"
#include "DNDS/Serialize/Checkpoint.hpp"
#include "DNDS/Serialize/DurableFile.hpp"

#include <algorithm>
#include <cstdio>
#include <functional>
#include <numeric>
#include <utility>

namespace DNDS {

namespace {

// For the comparison of declarations between ranks.
std::string attributeText(const NetcdfAttribute &attribute) {
    std::string text = fmt::format("{} {}", attribute.name, elementKindName(attribute.kind));
    std::visit(
        [&](const auto &value) {
            if constexpr (std::is_same_v<std::decay_t<decltype(value)>, std::string>)
                text += value;
            else
                for (const auto number : value)
                    text += fmt::format(" {}", number);
        },
        attribute.value);
    return text;
}

} // namespace

NetcdfWriter::NetcdfWriter(CommunicatorView comm, std::string path, const NetcdfWriteOptions &options)
    : file_(std::make_unique<File>(comm, std::move(path), options)) {
    if (options.append)
        file_->openExisting();
}
NetcdfWriter::NetcdfWriter(NetcdfWriter &&) noexcept = default;
// A swap: the destructor of the other reports an incomplete file that was here.
NetcdfWriter &NetcdfWriter::operator=(NetcdfWriter &&other) noexcept {
    file_.swap(other.file_);
    return *this;
}

// Closing is collective: it is called only where all ranks destroy the writer, not during an exception.
NetcdfWriter::~NetcdfWriter() {
    if (!file_ || file_->id < 0)
        return;
    const bool root = file_->comm.rank() == 0;
    // The exception may be local to this rank: the others would not take part in closing.
    if (std::uncaught_exceptions() > file_->exceptionsAtStart) {
        // An existing file is left as it is; a new one is incomplete and is removed.
        if (root && !file_->options.append)
            std::remove(file_->temporary.c_str());
        return;
    }
    nc_close(file_->id);
    if (root)
        warn("{} is not complete: its writer was destroyed without close(). What was written is in {}", file_->path,
             file_->temporary);
}

void NetcdfWriter::dimension(const std::string &name, index length) {
    open().declare(NetcdfDimension{name, length, false});
}

void NetcdfWriter::unlimited(const std::string &name) { open().declare(NetcdfDimension{name, 0, true}); }

void NetcdfWriter::variable(const std::string &name, ElementKind kind, const std::vector<std::string> &dimensions,
                            std::vector<NetcdfAttribute> attributes) {
    NetcdfVariable added;
    added.name = name;
    added.kind = kind;
    added.attributes = std::move(attributes);
    for (const std::string &wanted : dimensions) {
        const auto &known = open().content.dimensions;
        const auto found = std::ranges::find(known, wanted, &NetcdfDimension::name);
        DNDS_CHECK(found != known.end(), ArgumentError, "{}: variable '{}' has dimension '{}', which is not declared",
                   file_->path, name, wanted);
        added.dimensions.push_back(*found);
    }
    open().declare(std::move(added));
}

void NetcdfWriter::attribute(NetcdfAttribute attribute) {
    open().requireDeclaring();
    file_->checkAttribute("the file", attribute);
    auto &known = file_->content.attributes;
    std::erase_if(known, [&](const NetcdfAttribute &a) { return a.name == attribute.name; });
    known.push_back(std::move(attribute));
}

void NetcdfWriter::coordinate(const std::string &name, std::vector<real> values,
                              std::vector<NetcdfAttribute> attributes) {
    dimension(name, static_cast<index>(values.size()));
    variable(name, ElementKind::Float64, {name}, std::move(attributes));
    open().coordinates.emplace_back(name, std::move(values));
}

// CF conventions 1.8, sections 4 and 7.1: a coordinate variable of the cells' centres with `bounds` ([cells x 2]) for
// the nodes, or of the nodes themselves for nodal fields.
std::string NetcdfWriter::axis(const GridAxis &axis, bool nodal, bool periodic) {
    File &file = open();
    const std::vector<real> &nodes = axis.nodes;
    const std::size_t cells = nodes.empty() ? 0 : nodes.size() - 1;
    const auto ordered = [&](auto before) {
        return std::ranges::adjacent_find(nodes, [&](real a, real b) { return !before(a, b); }) == nodes.end();
    };
    DNDS_CHECK(cells > 0 && (ordered(std::less<>()) || ordered(std::greater<>())), ArgumentError,
               "{}: the {} nodes of axis '{}' neither ascend nor descend: give one more than there are cells",
               file.path, nodes.size(), axis.name);
    DNDS_CHECK(axis.centres.empty() || axis.centres.size() == cells, ArgumentError,
               "{}: axis '{}' has {} centres of {} cells", file.path, axis.name, axis.centres.size(), cells);
    std::string name = nodal ? axis.name + "_node" : axis.name;
    std::vector<real> values = nodal ? nodes : axis.centres;
    std::vector<NetcdfAttribute> attributes = axis.attributes;
    if (nodal && periodic)
        values.pop_back();
    for (std::size_t k = 0; values.size() < cells && !nodal; ++k)
        values.push_back(std::midpoint(nodes[k], nodes[k + 1]));
    if (!nodal)
        attributes.emplace_back("bounds", name + "_bnds");
    if (file.content.has(name)) { // declared before: of the same length and, in this file's first write, place
        dimension(name, static_cast<index>(values.size()));
        for (const auto &[declared, numbers] : file.coordinates)
            DNDS_CHECK(declared != name || numbers == values, ArgumentError,
                       "{}: coordinate '{}' was declared with other numbers: give the axis another name", file.path,
                       name);
        return name;
    }
    coordinate(name, std::move(values), std::move(attributes));
    if (std::ranges::find(file.content.attributes, "Conventions", &NetcdfAttribute::name) ==
        file.content.attributes.end())
        attribute({"Conventions", "CF-1.8"});
    if (nodal)
        return name;
    std::vector<real> bounds;
    for (std::size_t k = 0; k < cells; ++k)
        bounds.insert(bounds.end(), {nodes[k], nodes[k + 1]});
    dimension("bound", 2);
    variable(name + "_bnds", ElementKind::Float64, {name, "bound"});
    file.coordinates.emplace_back(name + "_bnds", std::move(bounds));
    return name;
}

void NetcdfWriter::like(const NetcdfVariable &variable) {
    NetcdfVariable copy = variable;
    copy.name.erase(0, copy.name.rfind('/') + 1); // npos + 1 is 0
    for (const NetcdfDimension &dimension : copy.dimensions)
        open().declare(dimension.unlimited ? NetcdfDimension{dimension.name, 0, true} : dimension);
    open().declare(std::move(copy));
}

// Compares all declarations; rank 0 then writes the coordinates.
void NetcdfWriter::define() {
    // Also called by `write` and `close`: a file without declared variables is a file, too.
    File &file = open();
    if (file.id >= 0)
        return;
    std::vector<std::string> declared;
    NetcdfFormat format = NetcdfFormat::Automatic;
    file.comm.guarded([&] {
        format = file.chooseFormat();
        file.checkFormat(format);
        for (const NetcdfDimension &dimension : file.content.dimensions)
            declared.push_back(
                fmt::format("dimension {} {} {}", dimension.name, dimension.length, dimension.unlimited));
        for (const NetcdfVariable &variable : file.content.variables) {
            declared.push_back(variable.description());
            for (const NetcdfAttribute &attribute : variable.attributes)
                declared.push_back(attributeText(attribute));
        }
        for (const NetcdfAttribute &attribute : file.content.attributes)
            declared.push_back(attributeText(attribute));
    });
    requireSame(file.comm, declared, [&](std::size_t k, const std::string *first) {
        throw ArgumentError(fmt::format("{}: this rank declares {}, rank 0 {}", file.path,
                                        k < declared.size() ? declared[k] : "nothing more",
                                        first == nullptr ? "nothing more" : *first));
    });
    file.create(format);
    // All ranks have the values; rank 0 writes them.
    for (const auto &[name, values] : file.coordinates) {
        std::vector<WrittenSlab> mine;
        const std::vector<index> shape = file.content.variable(name, file.path).shape();
        if (file.comm.rank() == 0)
            mine.push_back(slabOf(values.data(), std::vector<index>(shape.size()), shape));
        write(name, mine);
    }
}

// Checks, growth and reservation precede the write, each agreed on by all ranks.
void NetcdfWriter::write(std::string_view name, std::span<const WrittenSlab> slabs, bool raw) {
    define();
    File &file = open();
    Detail::WritePlan plan;
    file.comm.guarded([&] { file.prepare(name, slabs, raw, plan); });
    if (plan.variable->dimensions.empty()) {
        file.putScalar(plan, slabs);
        return;
    }
    file.grow(plan, slabs);
    file.reserve(plan, slabs);
    file.putAll(plan, slabs);
}

index NetcdfWriter::length(std::string_view dimension) const {
    for (const NetcdfDimension &known : made().content.dimensions)
        if (known.name == dimension)
            return known.length;
    throw ArgumentError(fmt::format("{} has no dimension '{}'", file_->path, dimension));
}

// The handle is dropped even if closing fails, so that the destructor does not try again.
void NetcdfWriter::close() {
    define();
    File &file = open();
    // Variables that were not written in the last steps.
    for (std::size_t variable = 0; variable < file.writtenEnds.size(); variable++)
        if (const auto &used = file.content.variables[variable].dimensions; !used.empty() && used[0].unlimited)
            file.fillUpTo(variable, length(used[0].name));
    file.comm.beforeCollective();
    file.closed = true;
    const int status = nc_close(std::exchange(file.id, -1));
    file.comm.guarded([&] { Detail::requireNetcdf(status, file.path, "complete it"); });
    onRankZero(file.comm, [&] {
        Detail::makeRoomInNetcdf(file.temporary, 0);
        // Unused reserved space of NetCDF-4.
        if (!file.extents.empty())
            DurableFile::forWriting(file.temporary).giveBackBehind();
        if (!file.options.append)
            renameDurably(file.temporary, file.path);
    });
}

const std::vector<std::string> &NetcdfWriter::notes() const { return made().notes; }
const std::string &NetcdfWriter::path() const { return made().path; }

NetcdfWriter::File &NetcdfWriter::made() const {
    DNDS_CHECK(file_ != nullptr, StateError, "this NetcdfWriter was moved from");
    return *file_;
}

NetcdfWriter::File &NetcdfWriter::open() const {
    DNDS_CHECK(!made().closed, StateError, "{} is closed: open it again with `append` to add to it", made().path);
    return *file_;
}

} // namespace DNDS