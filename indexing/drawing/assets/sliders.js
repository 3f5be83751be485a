// Sliders over the tiles of a picture: a widget of anywidget, whose Python part draws.

function render({ model, el }) {
  const counts = model.get("counts");
  const box = document.createElement("div");
  const picture = document.createElement("div");
  const sliders = counts.map((count, k) => sliderOf(model, count, k));
  const show = () => sliders.forEach((slider, k) => slider.show(model.get("index")[k]));
  const draw = () => { picture.innerHTML = model.get("svg"); };
  box.className = `hlo-tiles hlo-tiles-${model.get("theme")}`;
  picture.className = "hlo-tiles-picture";
  box.append(...sliders.filter((_, k) => counts[k] > 1).map(({ row }) => row), picture);
  model.on("change:index", show);
  model.on("change:svg", draw);
  show();
  draw();
  el.append(box);
  return () => {
    model.off("change:index", show);
    model.off("change:svg", draw);
  };
}

function sliderOf(model, count, k) {
  const row = document.createElement("label");
  const input = document.createElement("input");
  const text = document.createElement("output");
  Object.assign(input, { type: "range", min: 0, max: count - 1 });
  input.setAttribute("aria-label", `tile along d${k}`);
  input.dataset.lmSuppressShortcuts = "true"; // the arrow keys move to other cells of JupyterLab
  input.addEventListener("input", () => {
    const index = [...model.get("index")];
    index[k] = Number(input.value);
    model.set("index", index);
    model.save_changes();
  });
  row.append(`d${k}`, input, text);
  return {
    row,
    show: (number) => {
      input.value = number;
      text.textContent = `tile ${number} in [0, ${count - 1}]`;
    },
  };
}

export default { render };
