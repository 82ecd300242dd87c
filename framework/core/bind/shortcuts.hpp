/// Shortcuts: what a strategy reads and calls at every step, past nanobind's dispatch, which takes
/// longer than most of these do.
///
/// `quick` and `quick_ro` stand where `def` and `def_prop_ro` would. nanobind makes its function of
/// them as of all others, and keeps whatever has another form than plain positional arguments of
/// the right types: keywords, a wrong call and its error, signatures, docs. The first run puts a
/// descriptor before it that calls the same lambda directly (`use_shortcuts`); a stub generator,
/// which runs nothing, sees nanobind's.
#pragma once
#include <nanobind/nanobind.h>

#include <tuple>
#include <utility>

namespace hft {

namespace nb = nanobind;

/// Told as a Python error, whatever was thrown; to be called where it is caught.
void raise_caught() noexcept;

using ShortRead = PyObject* (*)(void* self) noexcept;
/// With as many arguments as it takes; `kOtherForm`: they are for nanobind.
using ShortCall = PyObject* (*)(void* self, PyObject* const* args) noexcept;
inline PyObject* const kOtherForm = Py_NotImplemented;

void add_shortcut(nb::handle type, const char* name, ShortRead read);
void add_shortcut(nb::handle type, const char* name, std::size_t args, ShortCall call);
void use_shortcuts();

namespace shortcut {

template <class T>
bool take(PyObject* from, T& to) noexcept {
  if (from == Py_None) return false;  // a default's sign, which nanobind knows
  if constexpr (std::is_same_v<T, nb::handle>) {
    to = from;
    return true;
  } else {
    return nb::try_cast(nb::handle(from), to, false);
  }
}

/// The types of a lambda that captures nothing.
template <class F>
struct Signature : Signature<decltype(&F::operator())> {};

template <class F, class R, class S, class... A>
struct Signature<R (F::*)(S&, A...) const> {
  static constexpr std::size_t kArgs = sizeof...(A);

  static PyObject* call(void* self, PyObject* const* args) noexcept {
    return call(*static_cast<S*>(self), args, std::index_sequence_for<A...>());
  }
  template <std::size_t... I>
  static PyObject* call(S& self, [[maybe_unused]] PyObject* const* args,
                        std::index_sequence<I...> /*of args*/) noexcept {
    std::tuple<std::remove_cvref_t<A>...> given;
    if (!(take(args[I], std::get<I>(given)) && ...)) return kOtherForm;
    try {
      if constexpr (std::is_void_v<R>) {
        F{}(self, std::get<I>(given)...);
        Py_RETURN_NONE;
      } else {
        return nb::cast(F{}(self, std::get<I>(given)...)).release().ptr();
      }
    } catch (...) {
      raise_caught();
      return nullptr;
    }
  }
};

}  // namespace shortcut

/// `.def(quick("name", lambda), ...)` for `.def("name", lambda, ...)`. The forms of one name differ
/// in the number of arguments.
template <class F>
struct quick : nb::def_visitor<quick<F>> {
  quick(const char* name, F) : name(name) {}
  template <class Class, class... Extra>
  void execute(Class& type, const Extra&... extra) const {
    type.def(name, F{}, extra...);
    using Form = shortcut::Signature<F>;
    add_shortcut(type, name, Form::kArgs, &Form::call);
  }
  const char* name;
};

/// `.def(quick_ro("name", lambda), ...)` for `.def_prop_ro("name", lambda, ...)`.
template <class F>
struct quick_ro : nb::def_visitor<quick_ro<F>> {
  quick_ro(const char* name, F) : name(name) {}
  template <class Class, class... Extra>
  void execute(Class& type, const Extra&... extra) const {
    type.def_prop_ro(name, F{}, extra...);
    add_shortcut(type, name,
                 [](void* self) noexcept { return shortcut::Signature<F>::call(self, nullptr); });
  }
  const char* name;
};

}  // namespace hft
