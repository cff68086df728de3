// Package page shows plans in a browser: one page without any other file, in which the policy can
// be edited and planned for again by the code that the controller decides with. What comes from a
// cluster is text, never markup. The page is readable without scripts; what a list leaves out is
// said where it is left out.
package page
