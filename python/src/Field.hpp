/// @file Field.hpp
/// @brief A distributed array with ghosts, for Python.
#pragma once

#include "AnyPair.hpp"
#include "Exchanger.hpp"
#include "NumpyViews.hpp"

#include "DNDS/Index/Mappings.hpp"

#include <nanobind/nanobind.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace DNDS::Python {

/// The properties of a field; Python objects as given.
struct FieldOptions {
    std::string name;
    index rows = 0;
    nanobind::handle dtype;
    std::string_view layout;
    nanobind::handle width; ///< None is one number per row for fixed rows, shown as [rows] instead of [rows, 1]
    nanobind::handle sizes;
};

/// A pair, its exchanges, and its views.
class Field {
  public:
    /// Collective: an error on one rank throws on all. `width` and `sizes` as in `resizeArray`. Called with Python's
    /// lock, which is released while ranks wait for each other.
    Field(CommPtr comm, const FieldOptions &options);

    const CommPtr &comm() const noexcept { return comm_; }
    AnyPair &pair() const noexcept { return *pair_; }
    ArrayBase &father() const noexcept { return *father_; }
    ArrayBase &son() const noexcept { return *son_; }
    Exchanger &exchanger() noexcept { return exchanger_; }
    bool scalar() const noexcept { return scalar_; }
    /// The fingerprint of the mesh whose cells, nodes or faces are the rows, if any.
    const std::optional<std::uint64_t> &mesh() const noexcept { return mesh_; }
    /// The permanent numbers of owned rows, of fields on cells and nodes of a mesh; else empty.
    std::span<const index> ids() const noexcept { return ids_; }
    /// `ids` live as long as `data`.
    void setMesh(std::uint64_t fingerprint, std::span<const index> ids, std::shared_ptr<const void> data) noexcept {
        mesh_ = fingerprint;
        ids_ = ids;
        meshData_ = std::move(data);
    }
    /// Versions of owned rows and ghosts: the present ones here, and those when all ranks knew that their copies
    /// match.
    using Versions = std::pair<std::uint64_t, std::uint64_t>;
    Versions versions() const noexcept { return {father_->version(), son_->version()}; }
    const Versions &known() const noexcept { return known_; }
    void setKnown() noexcept { known_ = versions(); }
    /// This field as a member of an exchange.
    Exchanger::Member exchangeMember() const;

    /// Ghosts: copies of these global rows, those of another mapping. Collective.
    void setGhosts(std::span<const index> globalRows);
    /// Ghosts for those of `reads` that others own; returns the local numbers of `reads`. Collective.
    std::vector<LocalIndex> ghostsFor(std::span<const index> reads);
    void usePattern(const std::shared_ptr<const ExchangePattern> &pattern);
    /// A field of the same kind whose owned rows are those of this one, moved, with the ghosts of `pattern`.
    /// Collective; called with Python's lock.
    std::unique_ptr<Field> moved(const Redistribute &rows, const std::shared_ptr<const ExchangePattern> &pattern) const;
    /// The pattern; throws StateError before there are ghosts.
    const ExchangePattern &pattern() const;

    /// Throws StateError while an exchange in flight forbids `what`.
    void requireLanded(const char *what) const { flight_->requireLanded(father_->label(), what); }
    /// The same for operations that only read owned rows.
    void requireSettled(const char *what) const { flight_->requireSettled(father_->label(), what); }
    nanobind::object owned() const;
    nanobind::object ghosts() const;
    nanobind::object data() const;
    /// Owned rows, then ghosts, as `data` shows them; where they are only read, they do not count as written.
    nanobind::object rows(bool writable) const;
    /// The same as a block and what keeps its memory.
    Block block(bool writable, std::shared_ptr<const void> &hold) const;
    AnyArray ownedArray() const { return {pair_->father(), comm_, true, flight_, false}; }
    AnyArray ghostArray() const { return {pair_->son(), comm_, true, flight_, true}; }

    /// The operations of a vector. Throws LayoutError if this field is not one.
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
    std::span<const index> ids_;
    std::shared_ptr<const void> meshData_;
    Versions known_{};
};

void bindField(nanobind::module_ &module);
/// Adds the operations of vectors to the class that `bindField` made.
void bindFieldOperations(nanobind::module_ &module);
void bindFieldGroup(nanobind::module_ &module);

} // namespace DNDS::Python
