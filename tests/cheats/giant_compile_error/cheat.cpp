#include "honest.h"
template <int N> struct Deep { typename Deep<N - 1>::missing a; Deep<N - 1> b; };
template <> struct Deep<0> {};
RUN { Deep<800> deep; }
