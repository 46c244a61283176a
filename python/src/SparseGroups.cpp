#include "Arguments.hpp"
#include "Errors.hpp"
#include "SparseHandle.hpp"

#include <nanobind/stl/array.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>

#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace DNDS::Python {

namespace nb = nanobind;
using namespace nb::literals;

/// Writes fields on a grid as a VTKHDF file. Collective.
void writeVtk(const std::vector<std::shared_ptr<AnySparseField>> &fields, nb::handle path,
              const std::array<real, 3> &origin, const std::array<real, 3> &spacing, bool centres) {
    SparseFieldCore &first = fields.front()->core();
    const CommunicatorView comm = first.pattern()->context()->comm();
    std::string file;
    guarded(comm, [&] {
        file = pathOf(path);
        DNDS_CHECK(first.grid() != nullptr, ArgumentError,
                   "'{}' is on clusters of a mesh: give it to VtkFile.write, among the cells", first.name());
    });
    const nb::gil_scoped_release others;
    SparseResults results;
    for (const auto &field : fields)
        field->addTo(results);
    writeVtkImage(comm, file, *first.grid(), results,
                  {origin, spacing, centres ? VtkPlacement::Centres : VtkPlacement::Cells});
}

nb::dict trafficOf(const SparseTraffic &traffic) {
    nb::dict result;
    result["exchanges"] = traffic.exchanges;
    result["messages"] = traffic.messages;
    result["bytes"] = traffic.bytes;
    result["rims"] = traffic.rims;
    result["withheld"] = traffic.withheld;
    result["allocations"] = traffic.allocations;
    result["frees"] = traffic.frees;
    result["buffer_bytes"] = traffic.bufferBytes;
    return result;
}

namespace {

using Release = nb::call_guard<nb::gil_scoped_release>;

/// Several fields on one pattern, and what keeps them.
struct SparseGroup {
    std::vector<std::shared_ptr<AnySparseField>> fields;
    std::unique_ptr<SparseFields> exchange;
};

SparseGroup makeGroup(const nb::sequence &given, const std::string &name) {
    SparseGroup group;
    std::vector<SparseFieldCore *> cores;
    for (const nb::handle object : given) {
        if (!nb::isinstance<SparseHandle>(object))
            throw nb::type_error("a group is made of SparseField objects");
        const auto &field = nb::cast<const SparseHandle &>(object);
        group.fields.push_back(field.field);
        cores.push_back(&field.core());
    }
    const nb::gil_scoped_release others;
    group.exchange = std::make_unique<SparseFields>(name, cores);
    return group;
}

} // namespace

void bindSparseGroups(nb::module_ &module) {
    nb::class_<SparseGroup>(module, "SparseFields", R"(Sparse fields on one grid with equal ghosts, exchanged together.

    species = dnds.SparseFields([dust, soot])
    species.exchange_ghosts()
)")
        .def(
            "__init__",
            [](SparseGroup *self, const nb::sequence &fields, const std::string &name) {
                new (self) SparseGroup(makeGroup(fields, name));
            },
            "fields"_a, "name"_a = "sparse fields",
            nb::sig("def __init__(self, fields: collections.abc.Sequence[SparseField], name: str = 'sparse fields') "
                    "-> None"),
            "Collective; all ranks give the same fields in the same order, or all raise.")
        .def(
            "exchange_ghosts", [](SparseGroup &self) { self.exchange->exchangeGhosts(); }, Release(),
            "As SparseField.exchange_ghosts, in one message a peer.")
        .def(
            "push_ghosts", [](SparseGroup &self, std::string_view op) { pushGhosts(*self.exchange, op); },
            "op"_a = "sum", "As SparseField.push_ghosts, in one message a peer.")
        .def(
            "write_vtk",
            [](const SparseGroup &self, nb::handle path, const std::array<real, 3> &origin,
               const std::array<real, 3> &spacing,
               bool centres) { writeVtk(self.fields, path, origin, spacing, centres); },
            "path"_a.none(), nb::kw_only(), "origin"_a = std::array<real, 3>{0, 0, 0},
            "spacing"_a = std::array<real, 3>{1, 1, 1}, "centres"_a = false, nb::sig(writeVtkSignature),
            "As SparseField.write_vtk, with all fields in one file.")
        .def_prop_ro(
            "traffic", [](const SparseGroup &self) { return trafficOf(self.exchange->traffic()); },
            nb::sig("def traffic(self) -> dict[str, int]"), "What was done on this rank.")
        .def(
            "__len__", [](const SparseGroup &self) { return self.fields.size(); }, "Fields in the group.");
}

} // namespace DNDS::Python
