// C++
#include "maps.h"
#include <algorithm>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

static volatile int sink;

struct Held {
	int i;
	NOINLINE ~Held() { sink += map_here(i); }
};

struct Thrown : std::runtime_error {
	NOINLINE Thrown(int i) : std::runtime_error("thrown") { sink += map_here(i); }
};

static NOINLINE int throws(int n, int i) // the destructors run while the stack is unwound
{
	Held held{i};
	if (n == 0)
		throw i;
	return throws(n - 1, i) + 1;
}

static NOINLINE int catches(int n, int i)
{
	try {
		return throws(n, i);
	} catch (int x) {
		return map_here(x);
	}
}

static NOINLINE int again(int i) // thrown anew from a handler, and caught further out
{
	try {
		try {
			throw Thrown(i);
		} catch (const std::exception &) {
			map_here(i);
			throw;
		}
	} catch (const std::exception &x) {
		return map_here(i) + x.what()[0];
	}
}

template <typename T> struct Shape {
	virtual ~Shape() {}
	virtual T area(int i) { return map_here(i); }
};
template <typename T> struct Square : Shape<T> {
	NOINLINE T area(int i) override { return Shape<T>::area(i) + 1; }
};

static NOINLINE int sorts(int i)
{
	std::vector<std::string> some{"c", "b", "a"};
	bool first = true;
	std::sort(some.begin(), some.end(), [&](const std::string &a, const std::string &b) {
		if (first)
			map_here(i);
		first = false;
		return a < b;
	});
	return some[0][0];
}

static NOINLINE int calls_of(const std::function<int(int)> &f, int i) { return f(i) + 1; }

static void run()
{
	std::unique_ptr<Shape<long>> shape(new Square<long>);
	while (calls < 3 * SIZES) {
		int i = next_call();
		switch (i % 5) {
		case 0: sink += catches(i % 7, i); break;
		case 1: sink += again(i); break;
		case 2: sink += shape->area(i); break;
		case 3: sink += sorts(i); break;
		case 4: sink += calls_of([](int i) { return map_here(i); }, i); break;
		}
		usleep(300);
	}
}

int main() { on_every_line(run); }
