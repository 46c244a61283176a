/// @file Value.hpp
/// @brief A number that tasks read and the program sets between runs of a plan, on the host or on a device.
#pragma once

#include "DNDS/Storage/Array.hpp"
#include "DNDS/Task/TaskBodies.hpp"

#include <concepts>
#include <string>
#include <type_traits>
#include <utility>

namespace DNDS::Task {

/// A functor's view of a `Value`: `dt()` is the number. Trivially copyable; it refers to the memory of the value, so
/// kernels in captured graphs read the latest number.
template <class T>
class ReadValue {
  public:
    ReadValue() = default;
    /// Refers to `value`, in the memory space of the kernel.
    DNDS_HOST_DEVICE explicit ReadValue(const T *value) : value_(value) {}
    /// The number.
    DNDS_HOST_DEVICE const T &operator()() const { return *value_; }
    /// Address of the number.
    const T *data() const { return value_; }

  private:
    const T *value_ = nullptr;
};

/// A time step, a CFL number, a few of them in a structure (`T` is trivially copyable): the same on all ranks, read by
/// tasks, set between runs. A number that is a member of a functor cannot change once the graph is declared.
///
///     Task::Value<real> dt("dt", 1e-3);
///     graph.task("update", mesh.cells).reads(rate, dt).readsWrites(u).run(UpdateKernel{});
///     ...                     // out(cell) += dt() * rate(cell), on the host and on a device
///     dt.set(2e-3);           // on all ranks; plan.run() uses it
///
/// It must outlive graph and plans. Tasks that read it may compute ghosts again (`recomputeGhosts`), as it is the same
/// everywhere. Loops over rows or blocks, calls and asynchronous calls take it; loops over blocks name a field first.
template <class T>
class Value {
  public:
    using Element = T;

    /// `name` is for messages, the same on all ranks. Local.
    explicit Value(std::string name, const T &value = {}) {
        number_.setName(std::move(name));
        number_.resize(1);
        set(value);
    }
    Value(const Value &) = delete;
    Value &operator=(const Value &) = delete;
    ~Value() = default;

    /// Sets it for later runs; all ranks set the same value. Not while a plan that reads it runs: after
    /// `Plan::start` call `Plan::wait` first. Local; on a device the next run copies it there.
    void set(const T &value) { number_(0, 0) = value; }
    /// The latest number set. Local.
    const T &get() const { return std::as_const(number_)(0, 0); }

    /// A functor's view in the memory of `backend`. Local. Throws StaleError where it is not current there.
    template <DeviceBackend backend>
    ReadValue<T> deviceView() const {
        return ReadValue<T>(number_.template deviceView<backend>().data());
    }
    /// The number as an array of one row, for graphs.
    const Array<T, 1> &array() const noexcept { return number_; }
    Array<T, 1> &array() noexcept { return number_; }

  private:
    /// An array of one row, so that versions, copies to the device and captured graphs work as for arrays.
    Array<T, 1> number_;
};

/// Values, const or not.
template <class TValue>
concept IsValue = std::same_as<std::remove_const_t<TValue>, Value<typename TValue::Element>>;

template <IsValue TValue>
class HandleOf<TValue> final : public RowsHandle {
  public:
    /// Refers to the value, which must outlive this.
    explicit HandleOf(TValue &value) : RowsHandle(std::as_const(value).array(), false, true) {}
};

template <IsValue TValue, AccessMode does>
struct TaskArgument<TValue, does> {
    static_assert(does == AccessMode::Reads, "tasks read a Value; the program sets it between runs");
    using Array = TValue;
    static constexpr AccessMode mode = does;
    static constexpr bool adds = false;
    using View = ReadValue<typename TValue::Element>;
    /// Argument of the functors of calls.
    using CallView = View;
    TValue *array;

    /// Argument of a call's functor, on the host. Throws StaleError.
    CallView callView() const { return view<DeviceBackend::Host>(nullptr); }
    /// Argument of a loop's functor, in the memory of `backend`. Throws StaleError.
    template <DeviceBackend backend>
    View view(const RowGuard * /*guard*/) const {
        return std::as_const(*array).template deviceView<backend>();
    }
    /// The same in a loop over blocks.
    template <DeviceBackend backend>
    View blockView(int /*block*/) const {
        return view<backend>(nullptr);
    }
};

/// A copy of the number, for `asyncCall`.
template <IsValue TValue>
class Snapshot<TValue> {
    using T = typename TValue::Element;

  public:
    /// Copies the number. Local.
    void take(const TValue &value) { copy_ = value.get(); }
    /// The copy. Only after `take`.
    ReadValue<T> view() const { return ReadValue<T>(&copy_); }

  private:
    T copy_{};
};

} // namespace DNDS::Task
