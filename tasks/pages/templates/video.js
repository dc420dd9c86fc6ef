"use strict";
for (const root of document.querySelectorAll(".video")) {
  const seconds = Number(root.dataset.seconds);
  const video = root.querySelector("video");
  const range = root.querySelector(".time");
  const steps = [...root.querySelectorAll(".step")];
  const nowText = root.querySelector(".now");
  const two = (number) => String(Math.floor(number)).padStart(2, "0");
  const clock = (t) =>
    t < 3600 ? `${Math.floor(t / 60)}:${two(t % 60)}` : `${Math.floor(t / 3600)}:${two((t / 60) % 60)}:${two(t % 60)}`;

  const show = (t) => {
    root.style.setProperty("--now", Math.min(t / seconds, 1));
    range.value = t;
    range.setAttribute("aria-valuetext", clock(t));
    nowText.textContent = clock(t);
    for (const step of steps) {
      const inside = Number(step.dataset.start) <= t && t < Number(step.dataset.end);
      step.setAttribute("aria-current", String(inside && !step.classList.contains("absent")));
    }
  };
  const seek = (t) => {
    if (video) video.currentTime = t;
    show(t);
  };

  if (video) {
    const data = root.querySelector(".player-data");
    if (data) {
      const bytes = Uint8Array.from(atob(data.textContent.trim()), (letter) => letter.charCodeAt(0));
      video.src = URL.createObjectURL(new Blob([bytes], { type: data.dataset.type }));
    }
    video.addEventListener("timeupdate", () => show(video.currentTime));
    video.addEventListener("error", () => { root.querySelector(".no-video").hidden = false; });
  }
  for (const button of root.querySelectorAll("button[data-start]")) {
    button.addEventListener("click", () => seek(Number(button.dataset.start)));
  }
  range.addEventListener("input", () => seek(Number(range.value)));
  for (const track of root.querySelectorAll(".track")) {
    track.addEventListener("click", (event) => {
      const box = track.getBoundingClientRect();
      seek(Math.max(0, Math.min(1, (event.clientX - box.left) / box.width)) * seconds);
    });
  }
  show(0);
}
