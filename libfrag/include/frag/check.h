/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAG_CHECK_H
#define FRAG_CHECK_H

#include <frag/abi.h>

/*
 * Compile-time checks of the macros for type tables and parameter tables. Plugins do not use this
 * header themselves.
 *
 * Each check is an expression with the value 0 that does not compile when it fails. The compiler's
 * message contains the name of the check:
 * - frag_field_has_another_type: the text of a FRAG_FIELD names another type than the C field has
 * - frag_field_has_another_count: the count of a FRAG_FIELD_ARRAY is not that of the C array
 * - frag_parameter_has_another_type: a FRAG_PARAM_... needs a field of another C type
 */
#ifndef __cplusplus

#define FRAG_CHECK(condition, name)                                                                \
	((uint32_t)(0 * sizeof(struct { int name : (condition) ? 1 : -1; })))
#define FRAG_CHECK_IS(field, ctype) __builtin_types_compatible_p(__typeof__(field), ctype)
#define FRAG_CHECK_NAME(text, name) (__builtin_strcmp(text, name) == 0)
/* 12 is GCC's record_type_class, also in clang. */
#define FRAG_CHECK_FIELD_TYPE(field, text)                                                         \
	(FRAG_CHECK_NAME(text, "bool") ? FRAG_CHECK_IS(field, _Bool)                               \
	 : FRAG_CHECK_NAME(text, "i8")                                                             \
		 ? FRAG_CHECK_IS(field, signed char) || FRAG_CHECK_IS(field, char)                 \
	 : FRAG_CHECK_NAME(text, "u8")                                                             \
		 ? FRAG_CHECK_IS(field, unsigned char) || FRAG_CHECK_IS(field, char)               \
	 : FRAG_CHECK_NAME(text, "i16") ? FRAG_CHECK_IS(field, short)                              \
	 : FRAG_CHECK_NAME(text, "u16") ? FRAG_CHECK_IS(field, unsigned short)                     \
	 : FRAG_CHECK_NAME(text, "i32") ? FRAG_CHECK_IS(field, int)                                \
	 : FRAG_CHECK_NAME(text, "u32") ? FRAG_CHECK_IS(field, unsigned int)                       \
	 : FRAG_CHECK_NAME(text, "i64")                                                            \
		 ? FRAG_CHECK_IS(field, long) || FRAG_CHECK_IS(field, long long)                   \
	 : FRAG_CHECK_NAME(text, "u64")                                                            \
		 ? FRAG_CHECK_IS(field, unsigned long) || FRAG_CHECK_IS(field, unsigned long long) \
	 : FRAG_CHECK_NAME(text, "f32")        ? FRAG_CHECK_IS(field, float)                       \
	 : FRAG_CHECK_NAME(text, "f64")        ? FRAG_CHECK_IS(field, double)                      \
	 : FRAG_CHECK_NAME(text, "complex64")  ? FRAG_CHECK_IS(field, float _Complex)              \
	 : FRAG_CHECK_NAME(text, "complex128") ? FRAG_CHECK_IS(field, double _Complex)             \
					       : __builtin_classify_type(field) == 12)

#define FRAG_CHECK_FIELD(field, text)                                                              \
	__extension__ FRAG_CHECK(FRAG_CHECK_FIELD_TYPE(field, text), frag_field_has_another_type)
#define FRAG_CHECK_COUNT(array, count)                                                             \
	__extension__ FRAG_CHECK(sizeof(array) == (count) * sizeof((array)[0]),                    \
				 frag_field_has_another_count)
#define FRAG_CHECK_PARAMETER(field, ctype)                                                         \
	__extension__ FRAG_CHECK(FRAG_CHECK_IS(field, ctype), frag_parameter_has_another_type)

#else

/* The checks are complete types only when they hold. */
template <bool fails> struct frag_field_has_another_type;
template <> struct frag_field_has_another_type<false> {
};
template <bool fails> struct frag_field_has_another_count;
template <> struct frag_field_has_another_count<false> {
};
template <bool fails> struct frag_parameter_has_another_type;
template <> struct frag_parameter_has_another_type<false> {
};

namespace frag_check
{
/* The type behind a reference, const and volatile. */
template <typename T> struct bare {
	typedef T type;
};
template <typename T> struct bare<T &> : bare<T> {
};
template <typename T> struct bare<const T> : bare<T> {
};
template <typename T> struct bare<volatile T> : bare<T> {
};
template <typename T> struct bare<const volatile T> : bare<T> {
};
template <typename T, typename U> struct same {
	static constexpr bool value = false;
};
template <typename T> struct same<T, T> {
	static constexpr bool value = true;
};

constexpr bool equal(const char *a, const char *b)
{
	return *a == *b && (*a == '\0' || equal(a + 1, b + 1));
}

/* An enum counts as the integer that holds it. */
template <typename T, bool is_enum> struct plain {
	typedef T type;
};
template <typename T> struct plain<T, true> {
	typedef __underlying_type(T) type;
};

template <typename Field> constexpr bool names(const char *text)
{
	typedef typename bare<Field>::type declared;
	typedef typename plain<declared, __is_enum(declared)>::type T;

	return equal(text, "bool")  ? same<T, bool>::value
	       : equal(text, "i8")  ? same<T, signed char>::value || same<T, char>::value
	       : equal(text, "u8")  ? same<T, unsigned char>::value || same<T, char>::value
	       : equal(text, "i16") ? same<T, short>::value
	       : equal(text, "u16") ? same<T, unsigned short>::value
	       : equal(text, "i32") ? same<T, int>::value
	       : equal(text, "u32") ? same<T, unsigned int>::value
	       : equal(text, "i64") ? same<T, long>::value || same<T, long long>::value
	       : equal(text, "u64")
		       ? same<T, unsigned long>::value || same<T, unsigned long long>::value
	       : equal(text, "f32") ? same<T, float>::value
	       : equal(text, "f64") ? same<T, double>::value
	       /* std::complex, without its header */
	       : equal(text, "complex64")  ? __is_class(T) && sizeof(T) == 2 * sizeof(float)
	       : equal(text, "complex128") ? __is_class(T) && sizeof(T) == 2 * sizeof(double)
					   : __is_class(T);
}
} // namespace frag_check

#define FRAG_CHECK(condition, name) ((uint32_t)(0 * sizeof(name<!(condition)>)))
#define FRAG_CHECK_FIELD(field, text)                                                              \
	FRAG_CHECK(frag_check::names<decltype(field)>(text), frag_field_has_another_type)
#define FRAG_CHECK_COUNT(array, count)                                                             \
	FRAG_CHECK(sizeof(array) == (count) * sizeof((array)[0]), frag_field_has_another_count)
#define FRAG_CHECK_PARAMETER(field, ctype)                                                         \
	FRAG_CHECK((frag_check::same<frag_check::bare<decltype(field)>::type,                      \
				     frag_check::bare<ctype>::type>::value),                       \
		   frag_parameter_has_another_type)

#endif

#endif
