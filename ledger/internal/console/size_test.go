package console

import (
	"testing"

	"github.com/weirlog/weir/ledger"
)

func TestSizes(t *testing.T) {
	for text, want := range map[string]int64{
		"1": 1, "1.5 KiB": 1536, "20 GiB": 20 << 30, "2GiB": 2 << 30, "0.5 TiB": 1 << 39, "1001 B": 1001, "72057594037927936": ledger.MaxGrant, "65536 TiB": ledger.MaxGrant,
		"": 0, "0": 0, "-1": 0, "0.5": 0, "NaN": 0, "Inf GiB": 0, "1 KB": 0, "GiB": 0, "72057594037927937": 0, "65537 TiB": 0, "9223372036854775807 TiB": 0,
	} {
		got, ok := parseSize(text)
		if ok != (want > 0) || ok && got != want {
			t.Errorf("%q is %d, %t, want %d", text, got, ok, want)
		}
	}
	for _, size := range []int64{1, 1000, 1536, 3 << 30, ledger.MaxGrant, ledger.MaxGrant - 1} {
		if got, ok := parseSize(sizeText(size)); !ok || got != size {
			t.Errorf("%d is written %q, which reads as %d", size, sizeText(size), got)
		}
	}
}
