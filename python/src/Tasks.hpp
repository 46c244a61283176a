/// @file Tasks.hpp
/// @brief Fields and Python functions as arrays and bodies of tasks.
#pragma once

#include "Field.hpp"

#include "DNDS/Task/GraphModel.hpp"

#include <nanobind/nanobind.h>

#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace DNDS::Python {

/// Rows of a field, as a task sees them: dnds.SeenRows.
struct SeenRows {
    nanobind::object field;
    Task::AccessRange range = Task::AccessRange::SameRow;
    Task::Adjacency adjacency{};
    std::optional<Task::Region> region{};
    nanobind::object table{}; ///< the table of the adjacency
};

/// A field as an array of a graph, whose owner keeps the Python object. Without ghosts it is one that is never pulled.
class FieldHandle final : public Task::ArrayHandle {
  public:
    explicit FieldHandle(Field &field) : field_(&field) {}

    std::string_view name() const override { return field_->father().label(); }
    const ArrayBase &father() const override { return field_->father(); }
    const ArrayBase *son() const override { return field_->pair().pattern() ? &field_->son() : nullptr; }
    std::shared_ptr<const ExchangePattern> pattern() const override { return field_->pair().pattern(); }
    ExchangeMember member() const override { return field_->exchangeMember().rows; }
    bool writable() const override { return true; }
    void toDevice() override;
    void toHost() override;
    void markWritten() override { field_->father().markWritten(); }
    void setPulledFrom(std::uint64_t version, std::uint64_t finishedBy) override {
        field_->son().setPulledFrom(version, finishedBy);
    }

  private:
    Field *field_;
};

/// Argument of a task function for an array that it adds to: dnds.AddedRows.
class AddedRows {
  public:
    /// Throws StaleError.
    explicit AddedRows(const Field &field);

    /// From now on leaves out rows outside [first, last); `guard` is null or knows the rows that the task declared.
    void narrow(index first, index last, const Task::RowGuard *guard);
    /// Adds `values`, broadcast to `rows`, one after another; negative rows are no rows. Throws IndexError,
    /// ArgumentError, and what NumPy raises.
    void add(nanobind::handle rows, nanobind::handle values) const;

  private:
    nanobind::object termsOf(nanobind::handle values, const nanobind::object &shape) const;

    std::string label_;
    bool scalar_;
    std::shared_ptr<const void> hold_;
    Block all_; ///< after `hold_`, which it sets
    index first_ = 0;
    index last_ = 0;
    const Task::RowGuard *guard_ = nullptr;
};

/// The rows of a field that a part of a task declared, in builds with debug checks.
struct RowGuards {
    std::vector<Task::RowGuard> each; ///< by access

    /// Throws IndexError for a row that none declares.
    void check(nanobind::handle rows) const;
};

/// A Python function and the fields that it gets. Whoever runs it keeps the Python objects.
struct TaskFunction {
    struct Argument {
        Field *field;
        Task::AccessMode mode;
        std::vector<std::size_t> accesses; ///< the task's accesses to this field
    };
    nanobind::handle function;
    std::vector<Argument> arguments;
};

/// The exception of Python that ended a run: the library would make it one of its own.
struct PythonFailure {
    std::exception_ptr raised;
};

/// The text with which a task ends whose function raised; the plan writes "in task ...: " in front of it.
inline constexpr std::string_view raisedText = "its function raised an exception of Python";

/// Body of a loop in a plan.
std::shared_ptr<Task::TaskBody> loopBody(TaskFunction function, std::shared_ptr<PythonFailure> failure);
/// Body of a call in a plan.
std::function<void()> callBody(TaskFunction function, std::shared_ptr<PythonFailure> failure);

/// Adds dnds.SeenRows, dnds.Region and dnds.AddedRows, and the methods of fields and entities that make them.
void bindSeenRows(nanobind::module_ &module);
/// Rows to loop over: of a Region, of a mesh's entities, of a field. Throws TypeError.
Task::Region loopOf(nanobind::handle rows);
/// A field, or rows of one. Throws TypeError.
SeenRows seenRowsOf(nanobind::handle rows);
void bindGraph(nanobind::module_ &module);
void bindPlan(nanobind::module_ &module);

} // namespace DNDS::Python
