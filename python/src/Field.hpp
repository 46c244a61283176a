/// @file Field.hpp
/// @brief A distributed array with ghosts, as Python sees it.
#pragma once

#include "AnyPair.hpp"
#include "Exchanger.hpp"

#include <nanobind/nanobind.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace DNDS::Python {

/// What a field is made of; objects of Python as they are given.
struct FieldOptions {
    std::string name;
    index rows = 0;
    nanobind::handle dtype;
    std::string_view layout;
    nanobind::handle width; ///< None is one number a row for fixed rows, shown as [rows] instead of [rows, 1]
    nanobind::handle sizes;
};

/// A pair, its exchanges, and its views.
class Field {
  public:
    /// Collective: what is wrong on one rank throws on all. `width` and `sizes` as in `resizeArray`. Called with
    /// Python's lock, which others have while ranks wait for each other.
    Field(CommPtr comm, const FieldOptions &options);

    const CommPtr &comm() const noexcept { return comm_; }
    AnyPair &pair() const noexcept { return *pair_; }
    ArrayBase &father() const noexcept { return *father_; }
    ArrayBase &son() const noexcept { return *son_; }
    Exchanger &exchanger() noexcept { return exchanger_; }
    bool scalar() const noexcept { return scalar_; }
    /// The fingerprint of the mesh whose cells, nodes or faces are the rows, if they are.
    const std::optional<std::uint64_t> &mesh() const noexcept { return mesh_; }
    void setMesh(std::uint64_t fingerprint) noexcept { mesh_ = fingerprint; }
    /// This field as part of an exchange.
    Exchanger::Member exchangeMember() const;

    /// Ghosts: copies of these global rows, those of another mapping. Collective.
    void setGhosts(std::span<const index> globalRows);
    void usePattern(const std::shared_ptr<const ExchangePattern> &pattern);
    /// The pattern; throws StateError before there are ghosts.
    const ExchangePattern &pattern() const;

    /// Throws StateError while an exchange is in flight that `what` would disturb.
    void needLanded(const char *what) const { flight_->needLanded(father_->label(), what); }
    /// The same for what needs owned rows alone and leaves them as they are.
    void needSettled(const char *what) const { flight_->needSettled(father_->label(), what); }
    nanobind::object owned() const;
    nanobind::object ghosts() const;
    nanobind::object data() const;
    AnyArray ownedArray() const { return {pair_->father(), comm_, true, flight_, false}; }
    AnyArray ghostArray() const { return {pair_->son(), comm_, true, flight_, true}; }

    /// The operations of a vector. Throws LayoutError where this field is none.
    Dof &dof() const;
    void swapData(Field &other);

  private:
    void finishGhosts();
    nanobind::object shown(ArrayBase &array, bool writable) const;

    CommPtr comm_;
    std::unique_ptr<AnyPair> pair_;
    std::shared_ptr<ArrayBase> father_;
    std::shared_ptr<ArrayBase> son_;
    std::shared_ptr<FlightCounts> flight_ = std::make_shared<FlightCounts>();
    Exchanger exchanger_;
    RowKind rows_ = RowKind::Fixed;
    bool scalar_ = false;
    std::optional<std::uint64_t> mesh_;
};

void bindField(nanobind::module_ &module);
/// Adds the operations of vectors to the class that `bindField` made.
void bindFieldOperations(nanobind::module_ &module);
void bindFieldGroup(nanobind::module_ &module);

} // namespace DNDS::Python
