// SPDX-License-Identifier: Apache-2.0
#define VERSION 3
#define CRASH_AT 20
#include "mark.h"
