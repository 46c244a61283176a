#include "FieldGroup.hpp"

#include "Field.hpp"

#include <nanobind/stl/string_view.h>

#include <string>
#include <utility>
#include <vector>

namespace DNDS::Python {

namespace nb = nanobind;
using namespace nb::literals;

FieldGroup::FieldGroup(const nb::iterable &fields, const Ghosts &some) {
    std::vector<Exchanger::Member> members;
    std::shared_ptr<const ExchangePattern> pattern;
    std::string first;
    for (const nb::handle object : fields) {
        if (!nb::isinstance<Field>(object))
            throw nb::type_error("a group is made of Field objects");
        const Field *field = nb::cast<Field *>(object);
        (void)field->pattern(); // throws before there are ghosts
        if (members.empty()) {
            pattern = field->pair().pattern();
            first = field->father().label();
        }
        DNDS_CHECK(field->pair().pattern() == pattern, ArgumentError,
                   "'{}' and '{}' cannot share messages: their mappings differ; use share_ghosts, or fields of "
                   "one mesh",
                   first, field->father().label());
        members.push_back(field->exchangeMember());
    }
    DNDS_CHECK(!members.empty(), ArgumentError, "a group needs at least one field");
    exchanger_.reset(some ? some(std::move(pattern)) : std::move(pattern), std::move(members));
}

void bindFieldGroup(nb::module_ &module) {
    using Release = nb::call_guard<nb::gil_scoped_release>;
    nb::class_<FieldGroup>(module, "FieldGroup", R"(Fields of one mapping, exchanged in one message per peer.

Types, widths and layouts may differ. The group keeps the arrays alive. Fields that get other ghosts need a new group.)")
        .def(
            "__init__", [](FieldGroup *self, const nb::iterable &fields) { new (self) FieldGroup(fields); }, "fields"_a,
            nb::sig("def __init__(self, fields: collections.abc.Iterable[Field]) -> None"),
            "Raises ArgumentError for fields of different mappings. Local.")
        .def(
            "__len__", [](FieldGroup &self) { return self.exchanger().size(); }, "Fields in the group.")
        .def(
            "pull",
            [](FieldGroup &self) {
                self.exchanger().startPull();
                self.exchanger().waitPull();
            },
            Release(), "Refreshes the ghosts of all fields; as Field.pull.")
        .def(
            "start_pull",
            [](FieldGroup &self) {
                self.exchanger().startPull();
                return Pending(self.exchanger(), nullptr);
            },
            Release(), nb::keep_alive<0, 1>(), "Starts a pull: a context manager whose end waits.")
        .def(
            "push",
            [](FieldGroup &self, std::string_view op, std::string_view ghosts) {
                const nb::gil_scoped_release others;
                const PushMode which = self.exchanger().pushModeOf(op, ghosts);
                self.exchanger().startPush(which);
                self.exchanger().waitPush(which);
            },
            "op"_a = "sum", "ghosts"_a = "keep",
            "Sends the ghosts of all fields back; as Field.push, which says what a second sum adds.")
        .def(
            "start_push",
            [](FieldGroup &self, std::string_view op, std::string_view ghosts) {
                const nb::gil_scoped_release others;
                const PushMode which = self.exchanger().pushModeOf(op, ghosts);
                self.exchanger().startPush(which);
                return Pending(self.exchanger(), &which);
            },
            "op"_a = "sum", "ghosts"_a = "keep", nb::keep_alive<0, 1>(),
            "Starts a push: a context manager whose end waits.");
}

} // namespace DNDS::Python
