// Package fair shares a few slots, such as concurrent searches, among many keys, such as organizations, so that whoever asks most does not
// get most. It works in memory and knows neither the keys nor what the slots are for.
package fair
