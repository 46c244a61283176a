#include "Tasks.hpp"

#include "Errors.hpp"
#include "Integers.hpp"
#include "NumpyViews.hpp"

#include <nanobind/stl/string.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

namespace DNDS::Python {

namespace nb = nanobind;

namespace {

/// A task function with its arguments.
class Callable {
  public:
    Callable(TaskFunction function, std::shared_ptr<PythonFailure> failure)
        : function_(std::move(function)), failure_(std::move(failure)) {}

    /// Takes views of all arrays. Throws StaleError.
    void bind(std::span<const Task::RowGuard> guards) {
        const nb::gil_scoped_acquire python;
        views_.clear();
        sums_.clear();
        for (std::size_t k = 0; k < function_.arguments.size(); ++k) {
            const auto &[field, mode, accesses] = function_.arguments[k];
            if (mode == Task::AccessMode::Adds) {
                views_.push_back(nb::cast(AddedRows(*field)));
                sums_.emplace_back(nb::cast<AddedRows *>(views_.back()),
                                   guards.empty() ? nullptr : &guards[accesses.front()]);
                continue;
            }
            views_.push_back(field->rows(mode != Task::AccessMode::Reads));
            if (guards.empty())
                continue;
            RowGuards guard;
            for (const std::size_t access : accesses)
                guard.each.push_back(guards[access]);
            views_.back() = nb::module_::import_("dnds.guarded").attr("guarded")(views_.back(), std::move(guard));
        }
    }
    /// Calls it, with `rows` first where they are given. What it raises is kept; then throws StateError.
    void call(nb::handle rows) const {
        std::vector<PyObject *> arguments;
        if (rows.is_valid())
            arguments.push_back(rows.ptr());
        for (const nb::object &view : views_)
            arguments.push_back(view.ptr());
        const nb::object result =
            nb::steal(PyObject_Vectorcall(function_.function.ptr(), arguments.data(), arguments.size(), nullptr));
        if (result.is_valid())
            return;
        std::string text(raisedText);
        try {
            throw nb::python_error();
        } catch (const nb::python_error &error) {
            failure_->raised = std::current_exception();
            text += fmt::format(" ({}: {})", textOf(error.type().attr("__name__")), textOf(error.value()));
        }
        throw StateError(text); // told to the other ranks
    }
    void narrow(index first, index last) const {
        for (const auto &[sums, guard] : sums_)
            sums->narrow(first, last, guard);
    }

  private:
    TaskFunction function_;
    std::shared_ptr<PythonFailure> failure_;
    std::vector<nb::object> views_;
    std::vector<std::pair<AddedRows *, const Task::RowGuard *>> sums_;
};

class LoopOfPython final : public Task::TaskBody {
  public:
    explicit LoopOfPython(Callable callable) : callable_(std::move(callable)) {}

    void bind(MemorySpace /*space*/, std::span<const Task::RowGuard> guards) override { callable_.bind(guards); }
    void run(const Executor & /*executor*/, const Task::PartRows &rows, index begin, index end) const override {
        if (begin == end)
            return;
        const nb::gil_scoped_acquire python;
        callable_.call(numbersOf(rows, begin, end));
    }
    void runAdding(const Task::PartRows &rows, index first, index last) const override {
        if (rows.count == 0)
            return;
        const nb::gil_scoped_acquire python;
        callable_.narrow(first, last);
        callable_.call(numbersOf(rows, 0, rows.count));
        callable_.narrow(0, 0);
    }
    void runAdding(const Executor & /*executor*/, const Task::Contributions & /*sums*/) const override {
        throw StateError("functions of Python run on the host");
    }

  private:
    /// The rows as NumPy's index type, made once: a body belongs to one plan, whose parts stay.
    nb::handle numbersOf(const Task::PartRows &rows, index begin, index end) const {
        nb::object &numbers = numbers_[{rows.list, rows.first + begin, end - begin}];
        if (!numbers.is_valid()) {
            const auto list = std::make_shared<std::vector<index>>();
            list->reserve(static_cast<std::size_t>(end - begin));
            for (index i = begin; i < end; ++i)
                list->push_back(rows(i));
            numbers = numpyOf(std::span<const index>(*list), list);
        }
        return numbers;
    }

    Callable callable_;
    mutable std::map<std::tuple<const LocalIndex *, index, index>, nb::object> numbers_;
};

} // namespace

std::shared_ptr<Task::TaskBody> loopBody(TaskFunction function, std::shared_ptr<PythonFailure> failure) {
    return std::make_shared<LoopOfPython>(Callable(std::move(function), std::move(failure)));
}

std::function<void()> callBody(TaskFunction function, std::shared_ptr<PythonFailure> failure) {
    const auto callable = std::make_shared<Callable>(std::move(function), std::move(failure));
    return [callable] {
        callable->bind({});
        const nb::gil_scoped_acquire python;
        callable->call({});
    };
}

void FieldHandle::toDevice() {
    field_->father().toDevice();
    field_->son().toDevice();
}

void FieldHandle::toHost() {
    field_->father().toHost();
    field_->son().toHost();
}

AddedRows::AddedRows(const Field &field)
    : label_(field.father().label()), scalar_(field.scalar()), all_(field.block(true, hold_)) {}

void RowGuards::check(nb::handle rows) const {
    const Integers list(rows, "rows"); // may be a copy
    for (const index row : list.span()) {
        const auto declares = [row](const Task::RowGuard &guard) {
            return row >= 0 && row < guard.rows.size() && guard.rows.test(row);
        };
        if (std::ranges::none_of(each, declares))
            each.front().refuse(row);
    }
}

void AddedRows::narrow(index first, index last, const Task::RowGuard *guard) {
    first_ = first;
    last_ = last;
    guard_ = guard;
}

nb::object AddedRows::termsOf(nb::handle values, const nb::object &shape) const {
    const nb::module_ numpy = nb::module_::import_("numpy");
    const nb::object dtype = numpy.attr("dtype")(std::string(elementKindName(all_.kind)));
    const nb::object terms = numpy.attr("asarray")(values);
    if (!nb::cast<bool>(numpy.attr("can_cast")(terms.attr("dtype"), dtype, "same_kind")))
        throw ArgumentError(fmt::format("values of {} cannot be added to '{}', which has {}",
                                        nb::cast<std::string>(nb::str(nb::object(terms.attr("dtype")))), label_,
                                        elementKindName(all_.kind)));
    return numpy.attr("ascontiguousarray")(numpy.attr("broadcast_to")(terms, shape), dtype);
}

void AddedRows::add(nb::handle rows, nb::handle values) const {
    const nb::object places = nb::module_::import_("numpy").attr("asarray")(rows);
    const Integers numbers(places.attr("reshape")(-1), "rows");
    const index size = static_cast<index>(all_.shape[0]), width = scalar_ ? 1 : static_cast<index>(all_.shape[1]);
    nb::object shape = places.attr("shape");
    if (!scalar_)
        shape = shape + nb::make_tuple(width);
    using Terms = nb::ndarray<nb::ro, nb::c_contig, nb::device::cpu>;
    const auto terms = nb::cast<Terms>(termsOf(values, shape));
    for (const index row : numbers.span()) {
        DNDS_CHECK(row < size, IndexError, "row {} is added to, but '{}' has {}", row, label_, size);
        if (guard_ != nullptr && row >= 0)
            guard_->check(row);
    }
    withType(all_.kind, RowKind::Fixed, [&](auto element, auto /*rows*/) {
        using T = decltype(element);
        const T *term = static_cast<const T *>(terms.data());
        for (const index row : numbers.span()) {
            T *const sums = static_cast<T *>(all_.data) + row * all_.strides[0];
            if (row >= first_ && row < last_)
                for (index j = 0; j < width; ++j)
                    sums[j] = static_cast<T>(sums[j] + term[j]);
            term += width;
        }
    });
}

} // namespace DNDS::Python
