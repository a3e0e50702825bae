// Command benchmark measures how well errors are grouped: it groups
// errors with known duplicates, in the order in which they came, by
// each of Weir's levels and by the rules of other products. It
// touches nothing but the domain and its data.
package main
