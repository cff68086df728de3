package rotation

import (
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// The claim was launched under these numeric requirements, and the label is nowhere.
func TestNumericRequirementsKeepTheirStrength(t *testing.T) {
	most := strconv.Itoa(math.MaxInt)
	for _, tt := range []struct {
		name        string
		claim, pool string // "Gt 3; Lt 8"
		want        string
		dropped     bool
	}{
		{name: "as they are", claim: "Gt 3; Lt 8", want: "Gt 3; Lt 8"},
		{name: "at least n is above n-1", claim: "Gte 4", want: "Gt 3"},
		{name: "at most n is below n+1", claim: "Lte 7", want: "Lt 8"},
		{name: "the narrower of two", claim: "Gt 3; Gte 5; Lt 9; Lte 7", want: "Gt 4; Lt 8"},
		{name: "in either order", claim: "Gte 5; Gt 3; Lte 7; Lt 9", want: "Gt 4; Lt 8"},
		{name: "one number is left", claim: "Gte 4; Lte 4", want: "Gt 3; Lt 5"},
		{name: "none is left", claim: "Gt 4; Lt 5", dropped: true},
		{name: "the pool is narrower", claim: "Gt 3", pool: "Gte 8; Lt 64", want: "Gt 7; Lt 64"},
		{name: "the pool is wider", claim: "Gt 16; Lt 32", pool: "Gt 3; Lt 64", want: "Gt 16; Lt 32"},
		{name: "the pool has moved away", claim: "Gt 16", pool: "Lt 8", dropped: true},
		{name: "the pool lists values", claim: "Gt 3", pool: "In 16,2,8", want: "In 16,8"},
		{name: "the pool lists none that fits", claim: "Gt 16", pool: "In 2,8", dropped: true},
		{name: "the pool excludes the key", claim: "Gt 3", pool: "DoesNotExist", dropped: true},
		{name: "the pool excludes a value, and sees to it itself", claim: "Gt 3", pool: "NotIn 8", want: "Gt 3"},
		{name: "the pool asks for the key", claim: "Gt 3", pool: "Exists", want: "Gt 3"},
		{name: "at least zero: Karpenter refuses a bound below it", claim: "Gte 0", want: "Exists"},
		{name: "at least less than zero", claim: "Gte -5; Lt 8", want: "Lt 8"},
		{name: "above less than zero", claim: "Gt -5; Lt 8", want: "Lt 8"},
		{name: "at most the greatest number there is", claim: "Lte " + most, want: "Exists"},
		{name: "below zero there is nothing", claim: "Lt 0", dropped: true},
		{name: "a bound that is no number", claim: "Gt many; Gt 3", dropped: true},
		{name: "a bound that is two", claim: "Gt 3,4", dropped: true},
		{name: "a bound of the pool that is no number", claim: "Gt 3", pool: "Lt many", dropped: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := NodeClaim{Requirements: parseRequirements(tt.claim)}
			got, dropped := replicate([]string{"k"}, Node{}, &c, NodePool{Requirements: parseRequirements(tt.pool)})
			var parts []string
			for _, r := range got {
				parts = append(parts, strings.TrimSpace(string(r.Operator)+" "+strings.Join(r.Values, ",")))
			}
			if diff := cmp.Diff(tt.want, strings.Join(parts, "; ")); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if len(dropped) > 0 != tt.dropped {
				t.Errorf("dropped %v, want %t", dropped, tt.dropped)
			}
		})
	}
}

func parseRequirements(s string) (rs []Requirement) {
	for _, text := range strings.Split(s, "; ") {
		if operator, values, _ := strings.Cut(text, " "); operator != "" {
			rs = append(rs, Requirement{"k", operator, strings.Split(values, ",")})
		}
	}
	return rs
}

// Whatever the requirements are: a number fits what is replicated exactly if it fits all of
// them.
func TestReplicatedBoundsAreNeitherWeakerNorStronger(t *testing.T) {
	draw := func(t *rapid.T, name string) (rs []Requirement) {
		for range rapid.IntRange(0, 3).Draw(t, name) {
			rs = append(rs, Requirement{"k", rapid.SampledFrom([]string{"Gt", "Gte", "Lt", "Lte"}).Draw(t, "operator"), []string{strconv.Itoa(rapid.IntRange(0, 9).Draw(t, "bound"))}})
		}
		return rs
	}
	rapid.Check(t, func(t *rapid.T) {
		claim, pool := draw(t, "claim"), draw(t, "pool")
		if len(claim) == 0 {
			return
		}
		got, dropped := replicate([]string{"k"}, Node{}, &NodeClaim{Requirements: claim}, NodePool{Requirements: pool})
		var replicated []Requirement
		for _, r := range got {
			replicated = append(replicated, Requirement{r.Key, string(r.Operator), r.Values})
		}
		for n := range 12 {
			v := strconv.Itoa(n)
			want := permits(claim, "k", v) && permits(pool, "k", v)
			if fits := len(dropped) == 0 && permits(replicated, "k", v); fits != want {
				t.Fatalf("%d fits %v: %t, but %v and %v: %t", n, replicated, fits, claim, pool, want)
			}
		}
	})
}
