#include "Field.hpp"

#include "Errors.hpp"

#include <utility>

namespace DNDS::Python {

namespace nb = nanobind;

Field::Field(CommPtr comm, const FieldOptions &options) : comm_(std::move(comm)) {
    guarded(comm_->view, [&] {
        const ElementKind kind = elementKindOf(options.dtype);
        rows_ = rowKindOf(options.layout);
        const bool fixed = rows_ == RowKind::Fixed;
        scalar_ = fixed && options.width.is_none();
        rowsize width = scalar_ ? 1 : DynamicSize;
        DNDS_CHECK(options.width.is_none() || nb::try_cast(options.width, width), ArgumentError,
                   "the width of '{}' is no 32-bit integer", options.name);
        DNDS_CHECK(!fixed || width >= 0, ArgumentError, "the width of '{}' is {}: it must not be negative",
                   options.name, width);
        DNDS_CHECK(!fixed || options.sizes.is_none(), ArgumentError,
                   "rows of '{}' have one width: sizes are for padded and csr", options.name);
        pair_ = makePair(options.name, comm_->view, kind, rows_, width);
        father_ = pair_->father();
        son_ = pair_->son();
        if (fixed)
            resizeArray(*father_, options.rows, nb::int_(width), options.sizes);
        else
            resizeArray(*father_, options.rows, options.width, options.sizes);
        father_->compress();
    });
    const nb::gil_scoped_release others;
    pair_->attach();
}

void Field::finishGhosts() {
    pair_->sizeSon();
    if (rows_ == RowKind::Fixed)
        comm_->view.guarded([&] { ArrayBase::joinRows(*father_, *son_, MemorySpace::Host); });
    exchanger_.reset(pair_->pattern(), {exchangeMember()});
}

Exchanger::Member Field::exchangeMember() const { return {pair_->member(), flight_}; }

void Field::setGhosts(std::span<const index> globalRows) {
    comm_->view.guarded([&] { requireLanded("get other ghosts"); });
    pair_->numberRows();
    pair_->pullRows(globalRows);
    finishGhosts();
}

std::vector<LocalIndex> Field::ghostsFor(std::span<const index> reads) {
    comm_->view.guarded([&] { requireLanded("get other ghosts"); });
    const GlobalMapping &rows = pair_->numberRows();
    std::vector<index> ghosts;
    comm_->view.guarded([&] { ghosts = rows.ofOthers(reads); });
    pair_->pullRows(ghosts);
    finishGhosts();
    return pattern().mapping()->toLocal(reads);
}

void Field::usePattern(const std::shared_ptr<const ExchangePattern> &pattern) {
    comm_->view.guarded([&] {
        requireLanded("get other ghosts");
        DNDS_CHECK(pattern != nullptr, StateError,
                   "'{}' cannot share ghosts before they are made: call set_ghosts first", father_->label());
    });
    pair_->usePattern(pattern);
    finishGhosts();
}

std::unique_ptr<Field> Field::moved(const Redistribute &rows,
                                    const std::shared_ptr<const ExchangePattern> &pattern) const {
    guarded(comm_->view, [&] { requireSettled("move to other ranks"); });
    const nb::str dtype(std::string(elementKindName(father_->shape().kind)).c_str());
    const bool none = scalar_ || rows_ == RowKind::Csr;
    const nb::object width = none ? nb::object(nb::none()) : nb::object(nb::int_(father_->width()));
    auto made = std::make_unique<Field>(comm_, FieldOptions{father_->name(), rows.after()->localSize(), dtype,
                                                            rowKindName(father_->shape().layout), width, nb::none()});
    const nb::gil_scoped_release others;
    comm_->view.guarded([&] { father_->toHost(); });
    rows.move(*father_, *made->father_);
    made->usePattern(pattern);
    return made;
}

const ExchangePattern &Field::pattern() const {
    DNDS_CHECK(pair_->pattern() != nullptr, StateError, "'{}' has no ghosts yet: call set_ghosts or share_ghosts first",
               father_->label());
    return *pair_->pattern();
}

nb::object Field::shown(ArrayBase &array, bool writable) const {
    std::shared_ptr<const void> hold;
    Block block = blockOf(array, writable, hold);
    if (scalar_) {
        block.shape.pop_back();
        block.strides.pop_back();
    }
    return numpyOf(block, std::move(hold), writable);
}

nb::object Field::owned() const {
    requireSettled("show its owned rows");
    return shown(*father_, !flight_->anyIs(Direction::Pull));
}

nb::object Field::ghosts() const {
    requireLanded("show its ghosts");
    return shown(*son_, true);
}

nb::object Field::data() const { return rows(true); }

Block Field::block(bool writable, std::shared_ptr<const void> &hold) const {
    requireLanded("show its ghosts");
    DNDS_CHECK(rows_ == RowKind::Fixed, LayoutError,
               "'{}' has rows of different sizes, which are not one NumPy array: use owned_array and ghost_array",
               father_->label());
    DNDS_CHECK(ArrayBase::areJoined(*father_, *son_, MemorySpace::Host), StateError,
               "the ghosts of '{}' no longer follow its owned rows: use owned and ghosts", father_->label());
    Block all = blockOf(father_->size() > 0 || son_->size() == 0 ? *father_ : *son_, writable, hold);
    if (father_->size() > 0 && son_->size() > 0) {
        using Holds = std::pair<std::shared_ptr<const void>, std::shared_ptr<const void>>;
        const auto holds = std::make_shared<Holds>(hold, nullptr);
        (void)blockOf(*son_, writable, holds->second);
        hold = holds;
        all.shape[0] += static_cast<std::size_t>(son_->size());
    }
    if (scalar_) {
        all.shape.pop_back();
        all.strides.pop_back();
    }
    return all;
}

nb::object Field::rows(bool writable) const {
    std::shared_ptr<const void> hold;
    const Block all = block(writable, hold);
    return numpyOf(all, std::move(hold), writable);
}

Dof &Field::dof() const {
    Dof *const dof = pair_->dof();
    DNDS_CHECK(dof != nullptr, LayoutError,
               "'{}' is not a vector: vectors are float64 with rows of one width; use NumPy on owned rows instead",
               father_->label());
    return *dof;
}

void Field::swapData(Field &other) {
    requireLanded("be swapped");
    other.requireLanded("be swapped");
    pair_->swapData(*other.pair_);
}

} // namespace DNDS::Python
