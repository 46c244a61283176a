#include "Field.hpp"

#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <utility>
#include <vector>

namespace DNDS::Python {

namespace nb = nanobind;
using namespace nb::literals;

namespace {

/// Several fields of one mapping, in one message per peer.
class FieldGroup {
  public:
    explicit FieldGroup(const std::vector<Field *> &fields) {
        DNDS_CHECK(!fields.empty(), ArgumentError, "a group needs at least one field");
        std::shared_ptr<const ExchangePattern> pattern;
        std::vector<Exchanger::Member> members;
        for (const Field *field : fields) {
            (void)field->pattern(); // throws before there are ghosts
            if (!pattern)
                pattern = field->pair().pattern();
            DNDS_CHECK(field->pair().pattern() == pattern, ArgumentError,
                       "'{}' and '{}' cannot share messages: their mappings differ; use share_ghosts, or fields of "
                       "one mesh",
                       fields.front()->father().label(), field->father().label());
            members.push_back(field->exchangeMember());
        }
        exchanger_.reset(std::move(pattern), std::move(members));
    }
    Exchanger &exchanger() noexcept { return exchanger_; }

  private:
    Exchanger exchanger_;
};

} // namespace

void bindFieldGroup(nb::module_ &module) {
    using Release = nb::call_guard<nb::gil_scoped_release>;
    nb::class_<FieldGroup>(module, "FieldGroup", R"(Fields of one mapping, exchanged in one message per peer.

Types, widths and layouts may differ. The group keeps the arrays alive. Fields that get other ghosts need a new group.)")
        .def(
            "__init__",
            [](FieldGroup *self, const nb::iterable &fields) {
                std::vector<Field *> members;
                for (const nb::handle field : fields) {
                    if (!nb::isinstance<Field>(field))
                        throw nb::type_error("a group is made of Field objects");
                    members.push_back(nb::cast<Field *>(field));
                }
                new (self) FieldGroup(members);
            },
            "fields"_a, nb::sig("def __init__(self, fields: collections.abc.Iterable[Field]) -> None"),
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
