#include "Arguments.hpp"
#include "BlockHandles.hpp"
#include "NumpyViews.hpp"

#include "DNDS/Blocks/BlockBoundary.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace DNDS::Python {

namespace nb = nanobind;
using namespace nb::literals;

namespace {

/// A BlockBoundary of any type; functions are Python's.
class AnyBoundary {
  public:
    AnyBoundary() = default;
    AnyBoundary(const AnyBoundary &) = delete;
    AnyBoundary &operator=(const AnyBoundary &) = delete;
    virtual ~AnyBoundary() = default;

    /// Sets a rule; `value` is its number or function. Local. Throws as the functions of BlockBoundary.
    virtual void set(const char *rule, const BlockFace &face, nb::handle value, rowsize component) = 0;
    /// As `fillGhosts`, on the host. Local. Throws what functions raise.
    virtual void fill(const BlockFieldHandle &field) = 0;
    /// For the garbage collector: functions often hold the boundary's owner.
    virtual int visitFunctions(visitproc visit, void *arg) const = 0;
};

/// What C++ fills, before Python's functions do.
struct Zero {
    real operator()(const BoundaryGhost & /*ghost*/) const { return 0; }
};

template <class T>
class BoundaryOf final : public AnyBoundary {
  public:
    explicit BoundaryOf(const BlockField<T> &field) : rules_(field), components_(field.components()) {}

    void set(const char *rule, const BlockFace &face, nb::handle value, rowsize component) override {
        const std::string_view name = rule;
        if (name == "constant")
            rules_.constant(face, numberOf(value), component);
        else if (name == "nearest")
            rules_.nearest(face, component);
        else if (name == "mirror")
            rules_.mirror(face, numberOf(value), component);
        else if (name == "dirichlet")
            rules_.dirichlet(face, numberOf(value), component);
        else if (name == "none")
            rules_.none(face, component);
        else
            setFunction(face, value, component);
    }

    /// Dimension by dimension, as ghosts of the higher ones may be made of those of the lower ones.
    void fill(const BlockFieldHandle &field) override {
        field.requireLanded("be filled");
        DNDS_CHECK(field.field->array().shape().kind == DNDS::elementKindOf<T>(), ArgumentError,
                   "'{}' has elements of {}, this boundary of {}: make a boundary of it", field.field->core().name(),
                   elementKindName(field.field->array().shape().kind), elementKindName(DNDS::elementKindOf<T>()));
        auto &typed = static_cast<BlockField<T> &>(field.field->core());
        rules_.requireFits(typed);
        DNDS_CHECK(typed.side() == MemorySpace::Host, StateError,
                   "the ghosts of '{}' are on the device, and Python fills them on the host: call to_host",
                   typed.name());
        std::shared_ptr<const void> hold;
        Block ghosts = blockOf(typed.array(), true, hold);
        T *elements = static_cast<T *>(ghosts.data);
        for (int d = 0; d < maxBlockDims; ++d) {
            forBoxes(Executor::host(), rules_.boxes(d),
                     BoundaryKernel<T, Zero>{elements, {}, rules_.timeIn(MemorySpace::Host)});
            const std::vector<BoundaryBox<T>> boxes(rules_.boxes(d).begin(), rules_.boxes(d).end());
            for (const BoundaryBox<T> &box : boxes) // of now: functions may set rules
                if (box.rule == BoundaryRule::Function && box.size() > 0) {
                    ghosts.data = elements + box.first;
                    call(box, ghosts, hold);
                }
        }
    }

    int visitFunctions(visitproc visit, void *arg) const override {
        for (const auto &[place, function] : functions_)
            Py_VISIT(function.ptr());
        return 0;
    }

  private:
    T numberOf(nb::handle value) const {
        T number{};
        DNDS_CHECK(nb::try_cast(value, number), ArgumentError, "the rule's value is no {}",
                   elementKindName(DNDS::elementKindOf<T>()));
        return number;
    }

    void setFunction(BlockFace face, nb::handle function, rowsize component) {
        DNDS_CHECK(PyCallable_Check(function.ptr()) != 0, ArgumentError, "the rule's function cannot be called");
        rules_.function(face, component);
        for (const int space : BoundaryGeometry::spacesOf(*rules_.blockPattern()->grid(), face))
            for (rowsize c = 0; c < components_; ++c)
                if (component < 0 || c == component)
                    functions_[{space, face.dim, face.high, c}] = nb::borrow(function);
    }

    /// Gives ghosts what a function returns for their positions.
    void call(const BoundaryBox<T> &box, Block &ghosts, const std::shared_ptr<const void> &hold) {
        const nb::module_ numpy = nb::module_::import_("numpy");
        const Centring &centring = rules_.blockPattern()->centring();
        const int first = maxBlockDims - box.dims; // of the box's four dimensions
        nb::list positions;
        ghosts.shape.clear();
        ghosts.strides.clear();
        for (int d = 0; d < box.dims; ++d) {
            std::vector<index> shape(toSize(box.dims), 1);
            shape[toSize(d)] = box.counts[first + d];
            const real from = static_cast<real>(box.lower[d]) + (centring.nodal[toSize(d)] ? 0 : 0.5);
            positions.append(numpy.attr("add")(numpy.attr("arange")(box.counts[first + d]), from)
                                 .attr("reshape")(nb::tuple(nb::cast(shape))));
            ghosts.shape.push_back(toSize(box.counts[first + d]));
            ghosts.strides.push_back(box.strides[first + d]);
        }
        const nb::object &function = functions_.at({box.face.space, box.face.dim, box.face.high, box.component});
        const nb::object values = function(*nb::tuple(positions));
        numpy.attr("copyto")(numpyOf(ghosts, hold, true), values, "casting"_a = "same_kind");
    }

    BlockBoundary<T, Zero> rules_;
    rowsize components_;
    std::map<std::tuple<int, int, bool, rowsize>, nb::object> functions_; ///< of a space, dimension, end, component
};

/// The rules, and the grid for the names of its spaces.
struct BoundaryHandle {
    GridHandle grid;
    std::unique_ptr<AnyBoundary> rules;
};

BlockFieldHandle &requireBlockField(nb::handle given) {
    BlockFieldHandle *field = blockFieldOf(given);
    if (field == nullptr)
        throw nb::type_error("boundaries are of BlockField and NdArray objects");
    return *field;
}

/// From (dimension, whether it is the high end) or (dimension, high, space), a name, a number or None.
BlockFace faceOf(const BoundaryHandle &self, nb::handle given) {
    BlockFace face;
    bool high = false;
    DNDS_CHECK(nb::isinstance<nb::sequence>(given) && (nb::len(given) == 2 || nb::len(given) == 3) &&
                   nb::try_cast(nb::object(given[0]), face.dim) && nb::try_cast(nb::object(given[1]), high),
               ArgumentError, "a face is dnds.low_face(dim) or dnds.high_face(dim)");
    face.high = high;
    const nb::object space = nb::len(given) == 3 ? nb::object(given[2]) : nb::none();
    if (space.is_none() || nb::try_cast(space, face.space))
        return face;
    const auto &spaces = self.grid.grid->spaces();
    const std::string name = nb::str(space).c_str();
    for (std::size_t s = 0; s < spaces.size(); ++s)
        if (spaces[s].name == name)
            face.space = static_cast<int>(s);
    DNDS_CHECK(face.space >= 0, ArgumentError, "the grid has no index space '{}'", name);
    return face;
}

int visitBoundary(PyObject *self, visitproc visit, void *arg) {
    Py_VISIT(Py_TYPE(self));
    const auto *boundary = nb::inst_ready(self) ? nb::inst_ptr<BoundaryHandle>(self) : nullptr;
    return boundary != nullptr && boundary->rules ? boundary->rules->visitFunctions(visit, arg) : 0;
}

int clearBoundary(PyObject *self) {
    const auto rules = std::move(nb::inst_ptr<BoundaryHandle>(self)->rules); // what goes with them may look here
    return 0;
}

PyType_Slot slots[] = {{Py_tp_traverse, reinterpret_cast<void *>(visitBoundary)},
                       {Py_tp_clear, reinterpret_cast<void *>(clearBoundary)},
                       {0, nullptr}};

using Component = std::optional<rowsize>;
using Boundaries = nb::class_<BoundaryHandle>;

/// A rule that has a number or function.
void bindValueRule(Boundaries &type, const char *rule, const char *value, const char *text) {
    type.def(
        rule,
        [rule](BoundaryHandle &self, nb::handle face, nb::handle given, Component component) {
            self.rules->set(rule, faceOf(self, face), given, component.value_or(-1));
        },
        "face"_a, nb::arg(value), "component"_a.none() = nb::none(), text);
}

void bindRule(Boundaries &type, const char *rule, const char *text) {
    type.def(
        rule,
        [rule](BoundaryHandle &self, nb::handle face, Component component) {
            self.rules->set(rule, faceOf(self, face), nb::none(), component.value_or(-1));
        },
        "face"_a, "component"_a.none() = nb::none(), text);
}

} // namespace

void bindBlockBoundary(nb::module_ &module) {
    Boundaries type(module, "BlockBoundary", nb::type_slots(slots),
                    R"(Rules for the ghosts beyond the ends of a grid, where it is neither periodic nor connected.

    walls = dnds.BlockBoundary(u)
    walls.dirichlet(dnds.low_face(0), 1)                      # 1 on the wall
    walls.nearest(dnds.high_face(0))
    walls.function(dnds.low_face(1), lambda i, j: np.sin(i))  # positions in cells: arrays
    walls.exchange_and_fill(u)                                # each step

Rules are for all components unless one is named; all ranks set the same. One object serves all fields with the grid,
ghosts, centring, components and type of the first. They are applied on the host.)");
    type.def(
        "__init__",
        [](BoundaryHandle *self, nb::handle given) {
            BlockFieldHandle &field = requireBlockField(given);
            new (self) BoundaryHandle{
                field.grid, withField(*field.field, [](auto &typed) {
                    return std::unique_ptr<AnyBoundary>(
                        std::make_unique<BoundaryOf<typename std::decay_t<decltype(typed)>::Element>>(typed));
                })};
        },
        "field"_a, nb::sig("def __init__(self, field: BlockField | NdArray) -> None"), "No rules yet. Local.");
    bindValueRule(type, "constant", "value", "Ghosts are a number. Local.");
    bindRule(type, "nearest", "Ghosts are copies of the nearest cell: no gradient. Local.");
    bindValueRule(
        type, "mirror", "factor",
        "The first ghost is `factor` times the cell at the face (or the node next to the one on it), the second "
        "times the next, and so on. "
        "Local. Raises ArgumentError where a block is thinner than its ghosts.");
    bindValueRule(type, "dirichlet", "value",
                  "A value on the face itself: the mean of a ghost and the cell that it mirrors. As `mirror`. Local.");
    bindValueRule(
        type, "function", "function",
        R"(Ghosts are what a function returns for their positions, one array a dimension, in cells: i + 0.5 is the middle
of cell i, i its lower node. The arrays broadcast to the ghosts of a block, and so does the result. It is called in each fill,
on ranks with such ghosts, and raises there. Local.)");
    bindRule(type, "none", "Ghosts are left to the program, as they are without rules. Local.");
    type.def(
            "fill", [](BoundaryHandle &self, nb::handle field) { self.rules->fill(requireBlockField(field)); },
            "field"_a, nb::sig("def fill(self, field: BlockField | NdArray) -> None"),
            R"(Fills the ghosts that have rules. Local; ghosts that are copies of cells are current: call it after an exchange.

Dimensions are filled in ascending order: beyond several walls a ghost has the rule of the highest of their dimensions.)")
        .def(
            "exchange_and_fill",
            [](BoundaryHandle &self, nb::handle given) {
                BlockFieldHandle &field = requireBlockField(given);
                field.requireLanded("exchange ghosts");
                {
                    const nb::gil_scoped_release others;
                    field.field->core().exchangeGhosts();
                }
                self.rules->fill(field);
            },
            "field"_a, nb::sig("def exchange_and_fill(self, field: BlockField | NdArray) -> None"),
            "Exchanges ghosts, then fills those that have rules. Collective.");
}

} // namespace DNDS::Python
