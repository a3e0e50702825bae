// Package fair shares a few slots, such as concurrent searches, among many
// keys, such as organizations, so that the key that asks most does not get
// most. It works in memory and does not depend on what keys and slots are.
package fair
