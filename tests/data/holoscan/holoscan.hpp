/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the C++ in docs/FROM_HOLOSCAN.md uses of Holoscan, declared after its reference. The SDK is
 * not needed for building frag, so that code is compiled against these declarations; this shows
 * that it is C++ and uses names and arguments as they are declared here, and no more.
 */
#ifndef TESTS_DATA_HOLOSCAN_HPP
#define TESTS_DATA_HOLOSCAN_HPP

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace holoscan {

struct Arg {
	template <typename T> Arg(const std::string &name, T value);
};

template <typename T> struct Parameter {
	operator T &();
};

struct IOSpec {
	struct IOSize {
	};
	static const IOSize kAnySize;
};

struct OperatorSpec {
	template <typename T> IOSpec &input(const std::string &name);
	template <typename T> IOSpec &input(const std::string &name, IOSpec::IOSize size);
	template <typename T> IOSpec &output(const std::string &name);
	template <typename T>
	void param(Parameter<T> &parameter, const char *key, const char *headline,
		   const char *description, T default_value);
};

template <typename T> struct expected {
	T &value();
};

struct InputContext {
	template <typename T> expected<T> receive(const char *name);
};

struct OutputContext {
	template <typename T> void emit(T data, const char *name = nullptr);
};

struct ExecutionContext {
};

struct Operator {
	virtual ~Operator();
	virtual void setup(OperatorSpec &spec);
	virtual void compute(InputContext &input, OutputContext &output, ExecutionContext &context);
};

struct CountCondition {
	explicit CountCondition(int64_t count);
};

struct Application {
	virtual ~Application();
	virtual void compose();
	void run();
	void add_flow(const std::shared_ptr<Operator> &from, const std::shared_ptr<Operator> &to,
		      std::set<std::pair<std::string, std::string>> ports);
	template <typename T, typename... Args>
	std::shared_ptr<T> make_operator(const std::string &, Args &&...args)
	{
		return std::make_shared<T>(std::forward<Args>(args)...);
	}
	template <typename T, typename... Args> std::shared_ptr<T> make_condition(Args &&...args);
};

template <typename T> std::shared_ptr<T> make_application();

template <typename... Args> void log_info(const char *format, Args &&...args);

} // namespace holoscan

#define HOLOSCAN_OPERATOR_FORWARD_ARGS(class_name)                                                 \
	template <typename... Args> explicit class_name(Args &&...)                                \
	{                                                                                          \
	}
#define HOLOSCAN_LOG_INFO(...) holoscan::log_info(__VA_ARGS__)

#endif
