/// @file Krylov.hpp
/// @brief Linear systems by Krylov methods: conjugate gradients, BiCGStab, GMRES.
#pragma once

#include "DNDS/Array/ArrayDof.hpp"
#include "DNDS/Array/DofKernels.hpp"
#include "DNDS/Mpi/Reductions.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace DNDS {

/// Stopping criteria and summation.
struct KrylovOptions {
    real relative = 1e-8;     ///< stop if the residual's norm is below this times that of the right-hand side,
    real absolute = 0;        ///< or below this,
    int maxIterations = 1000; ///< or after this number of products
    int restart = 30;         ///< GMRES: number of directions kept
    /// Scalar products and norms are exact sums, the same to the bit for any number of ranks, and so is the solution if
    /// the operator's products are. Otherwise ranks add their partial sums.
    bool exactSums = true;
    /// Called on all ranks after each iteration, and before the first one as iteration 0. `gmres` calls it again where
    /// it starts over or ends, with the true residual.
    std::function<void(int iteration, real residual)> monitor{};
};

/// The outcome: the same on all ranks.
struct KrylovResult {
    enum class End : unsigned char {
        Converged,
        IterationLimit,
        NotPositiveDefinite, ///< conjugate gradients met a direction d with d * A d <= 0
        Breakdown,           ///< BiCGStab: restart from x, or use GMRES. GMRES: the matrix is singular
        NotFinite,           ///< infinite or not a number
        Failed               ///< a solver of another library gave up
    };
    End end = End::IterationLimit;
    int iterations = 0;
    real first = 0;       ///< norm of the residual at the start
    real residual = 0;    ///< norm of the residual at the end
    real limit = 0;       ///< the bound for it; 0 if another library does not tell
    std::string reason{}; ///< another library's reason for stopping

    /// Whether the residual fell to the tolerance; and a readable line about the outcome. Local.
    bool converged() const noexcept { return end == End::Converged; }
    std::string text() const;
};

/// No preconditioner: z = r.
struct NoPreconditioner {
    /// Copies `r` to `z`.
    template <class TVector>
    void operator()(const TVector &r, TVector &z) const {
        z.copyFrom(r);
    }
};

namespace Detail {

/// Throws ArgumentError on all ranks for options that differ between ranks or make no sense. Collective.
void requireSameOptions(CommunicatorView comm, const char *method, const KrylovOptions &options);

/// The reduction that all solvers of a communicator use, one after another. Collective at the first call.
MessageReduction &krylovSums(CommunicatorContext &context);

/// Common to the methods: work vectors like b, sums, and the stopping criterion.
template <class TVector>
class KrylovWork {
  public:
    KrylovWork(const char *method, const TVector &b, const TVector &x, const KrylovOptions &options)
        : method_(method), options_(options), b_(b), context_(CommunicatorContext::of(b.father->comm())),
          messages_(krylovSums(*context_)) {
        b.father->comm().guarded([&] {
            DNDS_CHECK(b.trans.pattern() == x.trans.pattern() && b.father->size() == x.father->size(), LayoutError,
                       "{}: the right-hand side '{}' and the solution '{}' have different rows or ghosts", method,
                       b.father->label(), x.father->label());
            DNDS_CHECK(b.father != x.father, ArgumentError,
                       "{}: the right-hand side '{}' is given as the solution, too, which overwrites it", method,
                       b.father->label());
        });
        requireSameOptions(b.father->comm(), method, options);
        // The bound for the residual, from the norm of b.
        real length = running([&] { return norm(b); });
        if (!(length >= 1e-130 && length <= 1e130)) { // its square, or those of residuals, may be out of range
            length = 0;
            const auto most = b.componentNormInf();
            if (const real largest = most.size() > 0 ? most.maxCoeff() : 0; largest > 0 && std::isfinite(largest)) {
                unit_ = std::ldexp(real(1), std::clamp(std::ilogb(largest), -1000, 1000));
                TVector scaled = vector();
                scaled *= 1 / unit_;
                length = running([&] { return norm(scaled); });
            }
        }
        limit_ = std::max(options.absolute / unit_, options.relative * length);
        result_.limit = limit_ * unit_;
    }

    /// Runs the iterations: what they throw on one rank stops the others.
    template <class Body>
    decltype(auto) running(Body &&body) const {
        return context_->running(method_, b_.father->name(), std::forward<Body>(body));
    }
    /// A copy of the right-hand side, on its executor.
    TVector vector() const {
        TVector made;
        made.clone(b_);
        made.runOn(b_.executor());
        return made;
    }
    /// The same with a persistent pull, for arguments of the operator.
    TVector direction() const {
        TVector made = vector();
        made.father->setName("direction of " + b_.father->name());
        if (made.trans.pattern() != nullptr)
            made.trans.initPersistentPull();
        return made;
    }
    /// The power of two by which residuals are scaled, so that their squares neither underflow nor overflow.
    real unit() const { return unit_; }
    /// r = (b - r) / unit; on entry, r is A x.
    void toResidual(TVector &r) const {
        r *= real(-1);
        r += b_;
        if (unit_ != 1)
            r *= 1 / unit_;
    }
    /// The factors of a scalar product, row by row.
    using Factors = std::pair<const TVector &, const TVector &>;
    /// Scalar products, all of them in one reduction. Running.
    /// Batching pays because a reduction costs latency, O(log ranks), and hardly depends on how many numbers it has.
    std::vector<real> dots(std::span<const Factors> factors) const {
        std::vector<real> results(factors.size());
        if (options_.exactSums) {
            std::vector<FixedPoint::Column> columns;
            for (const auto &[x, y] : factors)
                columns.push_back({ownedOf(x).data(), std::ssize(ownedOf(x)), 1, ownedOf(y).data()});
            const auto add = [&](auto sums) { DofKernels::addColumns(columns, sums, b_.executor()); };
            exactSums(messages_, add, results);
            return results;
        }
        constexpr auto sum = [](real a, real b) noexcept { return a + b; };
        for (std::size_t k = 0; k < factors.size(); ++k)
            results[k] = DofKernels::dot(ownedOf(factors[k].first), ownedOf(factors[k].second), b_.executor());
        messages_.reduce(std::span(results), combineEach<real, sum>);
        return results;
    }
    std::vector<real> dots(std::initializer_list<Factors> factors) const {
        return dots(std::span(factors.begin(), factors.size()));
    }
    real dot(const TVector &x, const TVector &y) const { return dots({{x, y}})[0]; }
    real norm(const TVector &x) const { return std::sqrt(dot(x, x)); }

    /// Records a residual, in units. Returns whether to stop.
    /// Decides by reduced numbers only, which have the same bits on all ranks: they all stop in the same iteration.
    bool isOver(int iteration, real residual) {
        result_.iterations = iteration;
        result_.residual = residual * unit_;
        if (iteration == 0)
            result_.first = result_.residual;
        if (options_.monitor)
            options_.monitor(iteration, result_.residual);
        if (!std::isfinite(residual))
            return end(KrylovResult::End::NotFinite);
        if (residual <= limit_)
            return end(KrylovResult::End::Converged);
        return iteration >= options_.maxIterations && end(KrylovResult::End::IterationLimit);
    }
    /// Whether to stop because a product that should be positive is not.
    bool isIndefinite(real product) {
        return !(product > 0) &&
               end(std::isnan(product) ? KrylovResult::End::NotFinite : KrylovResult::End::NotPositiveDefinite);
    }
    bool end(KrylovResult::End how) {
        result_.end = how;
        return true;
    }
    const KrylovResult &result() const { return result_; }

  private:
    /// The owned elements on the executor's side. Throws LayoutError if their number is not that of b.
    std::span<const real> ownedOf(const TVector &x) const {
        const auto &rows = std::as_const(*x.father);
        DNDS_CHECK(rows.dataSize() == b_.father->dataSize(), LayoutError, "'{}' has {} elements, but '{}' has {}",
                   rows.label(), rows.dataSize(), b_.father->label(), b_.father->dataSize());
        const auto count = static_cast<std::size_t>(rows.dataSize());
        if (b_.executor().onDevice())
            return {rows.template deviceView<DeviceBackend::CUDA>().rows().data(), count};
        return {rows.data(), count};
    }

    const char *method_;
    const KrylovOptions &options_;
    const TVector &b_;
    std::shared_ptr<CommunicatorContext> context_;
    MessageReduction &messages_;
    real unit_ = 1;
    real limit_ = 0; ///< in units
    KrylovResult result_;
};

/// Orthogonalises w against an orthonormal basis by classical Gram-Schmidt, twice: as accurate as modified
/// Gram-Schmidt, with two reductions (Giraud, Langou, Rozloznik and van den Eshof 2005). Adds to the coefficients and
/// returns the norm of the remainder.
/// Two products of the basis with w in each pass, O(directions x rows); the number of reductions does not depend on the
/// number of directions, unlike that of modified Gram-Schmidt.
template <class TVector>
real orthogonalise(const KrylovWork<TVector> &work, std::span<const TVector> basis, TVector &w,
                   std::span<real> coefficients) {
    std::vector<typename KrylovWork<TVector>::Factors> factors;
    for (const TVector &v : basis)
        factors.push_back({v, w});
    factors.push_back({w, w});
    real before = 0, left = 0; // squares of norms
    for (int pass = 0; pass < 2; ++pass) {
        const std::vector<real> sums = work.dots(factors);
        before = left = sums.back();
        for (std::size_t i = 0; i < basis.size(); ++i) {
            coefficients[i] += sums[i];
            w.addTo(basis[i], -sums[i]);
            left -= sums[i] * sums[i];
        }
    }
    // By Pythagoras, unless the remainder of the first pass was mostly rounding error.
    return left > before / 2 ? std::sqrt(left) : work.norm(w);
}

} // namespace Detail

/// Solves A x = b for a symmetric positive definite A by conjugate gradients (Hestenes and Stiefel 1952), from the x
/// given.
///
/// `multiply(d, y)` sets the owned rows of y to A d; it may pull d, whose persistent pull has been prepared: d is
/// always the same vector, and the only one with a pull. `precondition(r, z)` sets those of z to an approximation of
/// A^-1 r, symmetric and positive definite, too. Vectors are ArrayDof of one pattern; they work on the executor of b.
/// Collective; per iteration one product and two reductions, four work vectors. What the
/// functions throw on one rank is thrown there; the others throw RevokedError. Throws on all ranks LayoutError for
/// vectors that do not fit and ArgumentError for options that differ or b given as x.
///
///     const KrylovResult done = conjugateGradients([&](auto &d, auto &y) { a.multiply(d, y); }, b, x, BlockJacobi(a));
/// d serves both as direction and, before the loop, as argument of the first product. Two reductions an iteration: d *
/// y, and then r * r together with r * z.
template <class TVector, class Multiply, class Precondition = NoPreconditioner>
KrylovResult conjugateGradients(Multiply &&multiply, const TVector &b, TVector &x, Precondition &&precondition = {},
                                const KrylovOptions &options = {}) {
    Detail::KrylovWork<TVector> work("conjugateGradients", b, x, options);
    TVector d = work.direction(), r = work.vector(), z = work.vector(), y = work.vector();
    return work.running([&] {
        d.copyFrom(x);
        multiply(d, r);
        work.toResidual(r);
        precondition(std::as_const(r), z);
        d.copyFrom(z);
        std::vector<real> sums = work.dots({{r, r}, {r, z}});
        for (int iteration = 0; !work.isOver(iteration, std::sqrt(sums[0])); ++iteration) {
            const real rz = sums[1];
            if (work.isIndefinite(rz))
                break;
            multiply(d, y);
            // d A d, the squared length of d in the norm of A: not positive if A is not positive definite.
            const real energy = work.dot(d, y);
            if (work.isIndefinite(energy))
                break;
            const real step = rz / energy;
            x.addTo(d, step * work.unit());
            r.addTo(y, -step);
            precondition(std::as_const(r), z);
            sums = work.dots({{r, r}, {r, z}});
            // The next direction, conjugate to all before: d = z + (r z / previous r z) d.
            d *= sums[1] / rz;
            d += z;
        }
        return work.result();
    });
}

/// The same for any A by BiCGStab (van der Vorst 1992), preconditioned from the right: the residual is that of A x = b.
/// Per iteration two products and three reductions; six work vectors.
/// Names as in the paper, with `first` for the shadow residual. d holds preconditioned vectors in turn.
template <class TVector, class Multiply, class Precondition = NoPreconditioner>
KrylovResult biCgStab(Multiply &&multiply, const TVector &b, TVector &x, Precondition &&precondition = {},
                      const KrylovOptions &options = {}) {
    Detail::KrylovWork<TVector> work("biCgStab", b, x, options);
    TVector d = work.direction(), r = work.vector(), first = work.vector(), p = work.vector(), v = work.vector(),
            t = work.vector();
    return work.running([&] {
        d.copyFrom(x);
        multiply(d, r);
        work.toResidual(r);
        first.copyFrom(r);
        p.copyFrom(r);
        std::vector<real> sums = work.dots({{r, r}, {first, r}});
        for (int iteration = 0; !work.isOver(iteration, std::sqrt(sums[0])); ++iteration) {
            const real rho = sums[1];
            precondition(std::as_const(p), d);
            multiply(d, v);
            const real along = work.dot(first, v);
            if ((along == 0 || rho == 0) && work.end(KrylovResult::End::Breakdown))
                break;
            const real alpha = rho / along;
            x.addTo(d, alpha * work.unit());
            r.addTo(v, -alpha);
            precondition(std::as_const(r), d);
            multiply(d, t);
            const std::vector<real> of = work.dots({{t, t}, {t, r}});
            // The step along t that makes the residual smallest: the "stabilisation" of the bi-conjugate step before.
            const real omega = of[0] > 0 ? of[1] / of[0] : 0;
            x.addTo(d, omega * work.unit());
            r.addTo(t, -omega);
            sums = work.dots({{r, r}, {first, r}});
            if (omega == 0) { // r was zero, or nothing can be gained
                if (!work.isOver(iteration + 1, std::sqrt(sums[0])))
                    work.end(KrylovResult::End::Breakdown);
                break;
            }
            // p = r + beta (p - omega v), beta = (rho / previous rho) (alpha / omega).
            p.addTo(v, -omega);
            p *= sums[1] / rho * (alpha / omega);
            p += r;
        }
        return work.result();
    });
}

/// The same for any A by GMRES (Saad and Schultz 1986) with restarts, preconditioned from the right, with classical
/// Gram-Schmidt, twice: an iteration takes one product and two reductions, and `restart` + 3 work vectors in all.
/// The Hessenberg matrix is made triangular by Givens rotations as its columns arrive, so that each iteration knows
/// its residual without computing x. The true residual decides at each restart.
/// Work of an iteration k of a cycle: O(k) vector operations and O(k) scalar ones, in the same order on all ranks.
template <class TVector, class Multiply, class Precondition = NoPreconditioner>
KrylovResult gmres(Multiply &&multiply, const TVector &b, TVector &x, Precondition &&precondition = {},
                   const KrylovOptions &options = {}) {
    Detail::KrylovWork<TVector> work("gmres", b, x, options);
    TVector d = work.direction(), z = work.vector();
    std::vector<TVector> basis;
    basis.push_back(work.vector());
    // At most so many directions before a restart.
    const auto most = static_cast<std::size_t>(options.restart);
    std::vector<std::vector<real>> h; // column k: entries 0 ... k + 1, rotated on arrival
    std::vector<real> cosines, sines, right;
    bool stuck = false; // A gives nothing new for any direction that is left
    // Collective, and so called right after a reduction: no rank can have failed since.
    const auto makeRoom = [&](std::size_t directions) {
        if (basis.size() <= directions)
            basis.push_back(work.vector());
    };
    return work.running([&] {
        for (int iteration = 0;;) {
            d.copyFrom(x);
            multiply(d, basis[0]);
            work.toResidual(basis[0]);
            real residual = work.norm(basis[0]);
            makeRoom(1);
            if (work.isOver(iteration, residual) || (stuck && work.end(KrylovResult::End::Breakdown)))
                return work.result();
            // A new cycle: the normalised residual is the first vector of the Krylov basis.
            basis[0] *= 1 / residual;
            right.assign(1, residual);
            h.clear();
            cosines.clear();
            sines.clear();
            std::size_t k = 0;
            for (bool over = false; k < most && !over; ++k) {
                // Arnoldi: the next vector of the basis, and column k of the Hessenberg matrix.
                precondition(std::as_const(basis[k]), d);
                multiply(d, basis[k + 1]);
                std::vector<real> &column = h.emplace_back(k + 2, 0);
                const real rest =
                    Detail::orthogonalise(work, std::span(std::as_const(basis)).first(k + 1), basis[k + 1], column);
                makeRoom(std::min(k + 2, most));
                column[k + 1] = rest;
                if (rest > 0)
                    basis[k + 1] *= 1 / rest;
                // Earlier rotations first; a new one then makes the last entry 0. |right[k + 1]| is the residual's
                // norm.
                for (std::size_t i = 0; i < k; ++i) {
                    const real upper = column[i];
                    column[i] = cosines[i] * upper + sines[i] * column[i + 1];
                    column[i + 1] = cosines[i] * column[i + 1] - sines[i] * upper;
                }
                const real length = std::hypot(column[k], column[k + 1]);
                stuck = length == 0;
                cosines.push_back(stuck ? 1 : column[k] / length);
                sines.push_back(stuck ? 0 : column[k + 1] / length);
                column[k] = length;
                right.push_back(stuck ? right[k] : -sines[k] * right[k]);
                right[k] *= cosines[k];
                residual = std::abs(right[k + 1]);
                // rest = 0: the solution lies in the space spanned so far ("happy breakdown"), unless A is singular.
                over = work.isOver(++iteration, residual) || rest == 0;
            }
            for (std::size_t i = k; i-- > 0;) { // back substitution
                for (std::size_t j = i + 1; j < k; ++j)
                    right[i] -= h[j][i] * right[j];
                right[i] = h[i][i] != 0 ? right[i] / h[i][i] : 0;
            }
            if (!std::isfinite(residual))
                return work.result();
            // x += M^-1 (basis * coefficients): preconditioned from the right, so the residual is that of A x = b.
            z.setConstant(0);
            for (std::size_t i = 0; i < k; ++i)
                z.addTo(basis[i], right[i] * work.unit());
            precondition(std::as_const(z), d);
            x += d; // the next turn looks whether the residual has become what is expected
        }
    });
}

} // namespace DNDS
