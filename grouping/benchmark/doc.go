// Command benchmark measures how well errors are grouped: it groups errors of which people have said which are the same, in the
// order in which they came, by each of Weir's levels and by the rules of other products. It touches nothing but the domain and its data.
package main
