package ledger

import "math/bits"

// Thresholds are the shares of a period's allowance, in percent, that are announced when they are
// reached.
var Thresholds = [...]int{50, 80, 100}

// crossed are the thresholds beyond the highest announced that used has reached of an allowance. Without one nothing is reached.
func crossed(announced int, used, allowance int64) []int {
	var percents []int
	for _, percent := range Thresholds {
		if percent > announced && allowance > 0 && used >= mulDivUp(allowance, int64(percent), 100) {
			percents = append(percents, percent)
		}
	}
	return percents
}

// mulDivUp is a*b/c rounded up, without overflow between; a and b are not negative, c is positive.
func mulDivUp(a, b, c int64) int64 {
	quotient, remainder := mulDiv(a, b, c)
	if remainder > 0 {
		quotient++
	}
	return quotient
}

func mulDiv(a, b, c int64) (quotient, remainder int64) {
	high, low := bits.Mul64(uint64(a), uint64(b))
	q, r := bits.Div64(high, low, uint64(c))
	return int64(q), int64(r)
}
