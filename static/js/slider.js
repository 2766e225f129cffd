/* The <output> for a slider shows its value. */

for (const output of document.querySelectorAll("output[for]")) {
  const input = document.getElementById(output.htmlFor.value);
  input.addEventListener("input", () => { output.value = input.value; });
}
