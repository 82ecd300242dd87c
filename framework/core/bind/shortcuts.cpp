#include "shortcuts.hpp"

#include <structmember.h>

#include <vector>

namespace hft {

namespace {

struct Form {
  std::size_t args;
  ShortCall call;
};

/// An attribute or a method. Found through its type's dict, so the type outlives it.
struct Descriptor {
  PyObject_HEAD vectorcallfunc vectorcall;
  PyTypeObject* owner;
  PyObject* full;  ///< what nanobind made
  ShortRead read;
  Form forms[2];
  std::size_t n_forms;
};

Descriptor& of(PyObject* d) noexcept { return *reinterpret_cast<Descriptor*>(d); }

/// Null: not one of ours, or never initialised.
void* instance(const Descriptor& d, PyObject* self) noexcept {
  const bool ours = Py_TYPE(self) == d.owner || PyType_IsSubtype(Py_TYPE(self), d.owner);
  return ours && nb::inst_ready(self) ? nb::inst_ptr<void>(self) : nullptr;
}

PyObject* get_attribute(PyObject* d, PyObject* self, PyObject* type) noexcept {
  if (self == nullptr) return Py_NewRef(d);
  if (void* const it = instance(of(d), self)) return of(d).read(it);
  PyObject* const full = of(d).full;
  return Py_TYPE(full)->tp_descr_get(full, self, type);
}

int set_attribute(PyObject* d, PyObject* self, PyObject* value) noexcept {
  PyObject* const full = of(d).full;
  return Py_TYPE(full)->tp_descr_set(full, self, value);
}

PyObject* call_method(PyObject* d, PyObject* const* args, std::size_t n, PyObject* names) noexcept {
  const Descriptor& method = of(d);
  const auto given = static_cast<std::size_t>(PyVectorcall_NARGS(n));
  if (void* const self = names || given == 0 ? nullptr : instance(method, args[0]))
    for (std::size_t i = 0; i < method.n_forms; ++i) {
      if (method.forms[i].args != given - 1) continue;
      PyObject* const result = method.forms[i].call(self, args + 1);
      if (result != kOtherForm) return result;
    }
  return PyObject_Vectorcall(method.full, args, n, names);
}

PyObject* bind_method(PyObject* d, PyObject* self, PyObject* /*type*/) noexcept {
  return self == nullptr ? Py_NewRef(d) : PyMethod_New(d, self);
}

/// Signature, docs, name: as nanobind's.
PyObject* ask_full(PyObject* d, PyObject* name) noexcept {
  return PyObject_GetAttr(of(d).full, name);
}

void destroy(PyObject* d) noexcept {
  PyTypeObject* const type = Py_TYPE(d);
  Py_DECREF(of(d).full);
  type->tp_free(d);
  Py_DECREF(type);
}

/// The interpreter remembers where it found a descriptor only if its type cannot change. One made
/// from Python would stand before nothing.
constexpr unsigned kFlags =
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION;

template <class F>
void* slot(F* function) noexcept {
  return reinterpret_cast<void*>(function);
}

nb::object attribute_type() {
  PyType_Slot slots[] = {{Py_tp_dealloc, slot(destroy)},
                         {Py_tp_getattro, slot(ask_full)},
                         {Py_tp_descr_get, slot(get_attribute)},
                         {Py_tp_descr_set, slot(set_attribute)},
                         {0, nullptr}};
  PyType_Spec spec{"hft._core.ShortAttribute", sizeof(Descriptor), 0, kFlags, slots};
  return nb::steal(PyType_FromSpec(&spec));
}

nb::object method_type() {
  PyMemberDef members[] = {
      {"__vectorcalloffset__", T_PYSSIZET, offsetof(Descriptor, vectorcall), READONLY, nullptr},
      {nullptr, 0, 0, 0, nullptr}};
  PyType_Slot slots[] = {{Py_tp_dealloc, slot(destroy)},
                         {Py_tp_getattro, slot(ask_full)},
                         {Py_tp_descr_get, slot(bind_method)},
                         {Py_tp_call, slot(PyVectorcall_Call)},
                         {Py_tp_members, members},
                         {0, nullptr}};
  PyType_Spec spec{"hft._core.ShortMethod", sizeof(Descriptor), 0,
                   kFlags | Py_TPFLAGS_METHOD_DESCRIPTOR | Py_TPFLAGS_HAVE_VECTORCALL, slots};
  return nb::steal(PyType_FromSpec(&spec));
}

struct Shortcut {
  nb::handle owner;
  const char* name;
  ShortRead read;  ///< or
  Form form;
};

std::vector<Shortcut>& waiting() {
  static std::vector<Shortcut> shortcuts;
  return shortcuts;
}

/// What stands in `type` under a name, or a fresh descriptor of `kind` before it.
Descriptor& descriptor(nb::handle kind, nb::handle type, const char* name) {
  const nb::object full = type.attr(name);
  if (nb::handle(reinterpret_cast<PyObject*>(Py_TYPE(full.ptr()))).is(kind)) return of(full.ptr());
  auto* const d = PyObject_New(Descriptor, reinterpret_cast<PyTypeObject*>(kind.ptr()));
  d->vectorcall = call_method;
  d->owner = reinterpret_cast<PyTypeObject*>(type.ptr());
  d->full = full.inc_ref().ptr();
  d->n_forms = 0;
  type.attr(name) = nb::steal(reinterpret_cast<PyObject*>(d));
  return *d;
}

}  // namespace

void add_shortcut(nb::handle type, const char* name, ShortRead read) {
  waiting().push_back({type, name, read, {}});
}

void add_shortcut(nb::handle type, const char* name, std::size_t args, ShortCall call) {
  waiting().push_back({type, name, nullptr, {args, call}});
}

void use_shortcuts() {
  if (waiting().empty()) return;
  const nb::object attribute = attribute_type(), method = method_type();
  for (const Shortcut& s : std::exchange(waiting(), {})) {
    if (s.read != nullptr) {
      descriptor(attribute, s.owner, s.name).read = s.read;
    } else {
      Descriptor& d = descriptor(method, s.owner, s.name);
      d.forms[d.n_forms++] = s.form;
    }
  }
}

}  // namespace hft
